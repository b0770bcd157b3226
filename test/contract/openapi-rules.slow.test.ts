/** The OpenAPI document against Spectral's rules, which take seconds to load. */
import spectralCore, { type RulesetDefinition } from "@stoplight/spectral-core";
import { oas } from "@stoplight/spectral-rulesets";
import { expect } from "chai";
import { contract } from "../../tools/rig/contract-judge.js";

describe("the OpenAPI document", () => {
  it("the OpenAPI document passes Spectral's rules", async () => {
    const spectral = new spectralCore.Spectral();
    spectral.setRuleset({ extends: [oas] as RulesetDefinition[] });
    expect(await spectral.run(JSON.parse(JSON.stringify(contract)))).to.deep.equal([]);
  });
});
