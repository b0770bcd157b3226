/** `strongroom generate`: the shape of what is made, who sees it, and that nothing is replaced by accident. */
import { expect } from "chai";
import pMap from "p-map";
import { shareTestServer } from "../support/server.js";
import { mustGet, mustInit, mustPut } from "../support/test-client.js";
import { must, testRows } from "./command-rows.js";

describe("strongroom generate", () => {
  const server = shareTestServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "tls/key", "v");
  });
  const here = () => ({ STRONGROOM_HOME: server().home });

  const generated: readonly (readonly [string, readonly string[], RegExp])[] = [
    ["32 letters and digits", [], /^(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[A-Za-z0-9]{32}$/],
    ["a length", ["--length", "3"], /^(?=.*[a-z])(?=.*[A-Z])(?=.*\d).{3}$/],
    [
      "sets, one of each at least",
      ["--length", "4", "--sets", "lower,symbols,digits,upper"],
      /^(?=.*[^A-Za-z0-9]).{4}$/,
    ],
    ["one set", ["--sets", "hex", "--length", "64"], /^[0-9a-f]{64}$/],
    ["words", ["--words", "6"], /^[a-z]+(?:-[a-z-]+){5,}$/],
    ["words and what stands between", ["--words", "3", "--separator", " "], /^[a-z-]+(?: [a-z-]+){2}$/],
  ];
  it("generate makes what it is told to, and prints with --print what it has stored", async () => {
    const make = async ([what, flags, shape]: (typeof generated)[number]) => {
      const printed = await must(here(), ["generate", `gen/${what}`, "--print", ...flags]);
      expect(printed, what).to.match(shape);
      const want = { value: printed, metadata: { type: "password" } };
      expect(await mustGet(server(), `gen/${what}`)).to.deep.include(want);
    };
    await pMap(generated, make, { concurrency: 4 });
  });

  it("generate shows the value only when told", async () => {
    const said = await must(here(), ["generate", "gen/silent"]);
    const { value } = await mustGet(server(), "gen/silent");
    expect(said).to.contain("gen/silent stored, about 190 bits").and.not.to.contain(String(value));
    const json = await must(here(), ["generate", "gen/silent", "--force", "--json"]);
    const next = String((await mustGet(server(), "gen/silent"))["value"]);
    expect(next).not.to.equal(value);
    expect(JSON.parse(json)).to.deep.equal({
      ok: true,
      path: "gen/silent",
      bits: 190,
      replaced: true,
      copied: false,
    });
  });

  it("generate draws every character of a set, and each about as often as any other", async () => {
    const printed = await must(here(), ["generate", "gen/long", "-p", "--length", "4096", "--sets", "digits"]);
    const counts = [..."0123456789"].map((digit) => printed.split(digit).length - 1);
    const chiSquare = counts.reduce((sum, count) => sum + (count - 409.6) ** 2 / 409.6, 0);
    expect(chiSquare, "9 degrees of freedom: more than this once in 10^9 runs").to.be.below(62);
  });

  testRows(here, {
    "over what is there": { args: ["generate", "tls/key"], exit: 7, err: /--force/ },
    "fewer characters than sets": { args: ["generate", "gen/x", "--length", "2"], exit: 2, err: /--length/ },
    "an unknown set": { args: ["generate", "gen/x", "--sets", "emoji"], exit: 2, err: /lower, upper/ },
    "no length": { args: ["generate", "gen/x", "--length", "0"], exit: 2, err: /from 1 to 4096/ },
    "no clipboard": { args: ["generate", "gen/x", "-c"], more: { PATH: "/nowhere" }, exit: 1, err: /xclip/ },
    "a trial with a path that cannot be": { args: ["generate", "a//b", "--dry-run"], exit: 2, err: /a\/\/b: / },
    "a trial with too long a description": {
      args: ["generate", "gen/x", "--dry-run", "--description", "x".repeat(4097)],
      exit: 2,
      err: /description has more than 4096 bytes/,
    },
    "words of a length": { args: ["generate", "gen/x", "--words", "4", "--length", "9"], exit: 2, err: /--length/ },
    "words of sets": { args: ["generate", "gen/x", "--sets", "hex", "--words", "4"], exit: 2, err: /--sets/ },
    "a separator of no words": { args: ["generate", "gen/x", "--separator", "+"], exit: 2, err: /--words/ },
    "printed and copied": { args: ["generate", "gen/x", "-p", "-c"], exit: 2, err: /--copy/ },
    "a time to clear without a copy": { args: ["generate", "gen/x", "--clear-after", "9"], exit: 2, err: /--copy/ },
    "no other than a copy is cleared": { args: ["get", "tls/key", "--clear-after", "9"], exit: 2, err: /--copy/ },
    "a trial": { args: ["generate", "gen/x", "--dry-run", "--print"], exit: 0, out: /would be stored/ },
  });
});
