/** `strongroom generate`: the shape of the value, where it is shown, and protection from overwriting. */
import { expect } from "chai";
import pMap from "p-map";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustPut } from "../../tools/rig/test-client.js";
import { must, testRows } from "./command-rows.js";

describe("strongroom generate", () => {
  const server = shareLocalServer({}, async (started) => {
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
    ["words with a separator", ["--words", "3", "--separator", " "], /^[a-z-]+(?: [a-z-]+){2}$/],
  ];
  it("generates the requested shape, and prints with --print what it has stored", async () => {
    const make = async ([what, flags, shape]: (typeof generated)[number]) => {
      const printed = await must(here(), ["generate", `gen/${what}`, "--print", ...flags]);
      expect(printed, what).to.match(shape);
      const want = { value: printed, metadata: { type: "password" } };
      expect(await mustGet(server(), `gen/${what}`)).to.deep.include(want);
    };
    await pMap(generated, make, { concurrency: 4 });
  });

  it("generate shows the value only with --print", async () => {
    const said = await must(here(), ["generate", "gen/silent"]);
    const { value } = await mustGet(server(), "gen/silent");
    expect(said).to.contain("gen/silent stored, about 190 bits").and.not.to.contain(String(value));
    const json = await must(here(), ["generate", "gen/silent", "--replace", "--json"]);
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

  it("draws the characters of a set with equal probability", async () => {
    const printed = await must(here(), ["generate", "gen/long", "-p", "--length", "4096", "--sets", "digits"]);
    const counts = [..."0123456789"].map((digit) => printed.split(digit).length - 1);
    const chiSquare = counts.reduce((sum, count) => sum + (count - 409.6) ** 2 / 409.6, 0);
    expect(chiSquare, "9 degrees of freedom: exceeded once in 10^9 runs").to.be.below(62);
  });

  testRows(here, {
    "over an existing secret": { args: ["generate", "tls/key"], exit: 7, err: /--replace/ },
    "fewer characters than sets": { args: ["generate", "gen/x", "--length", "2"], exit: 2, err: /--length/ },
    "an unknown set": { args: ["generate", "gen/x", "--sets", "emoji"], exit: 2, err: /lower, upper/ },
    "an invalid length": { args: ["generate", "gen/x", "--length", "0"], exit: 2, err: /from 1 to 4096/ },
    "no clipboard": { args: ["generate", "gen/x", "-c"], more: { PATH: "/nowhere" }, exit: 1, err: /xclip/ },
    "a dry run with an invalid path": { args: ["generate", "a//b", "--dry-run"], exit: 2, err: /a\/\/b: / },
    "a dry run with too long a description": {
      args: ["generate", "gen/x", "--dry-run", "--description", "x".repeat(4097)],
      exit: 2,
      err: /description has more than 4096 bytes/,
    },
    "words with a length": { args: ["generate", "gen/x", "--words", "4", "--length", "9"], exit: 2, err: /--length/ },
    "words with sets": { args: ["generate", "gen/x", "--sets", "hex", "--words", "4"], exit: 2, err: /--sets/ },
    "a separator without words": { args: ["generate", "gen/x", "--separator", "+"], exit: 2, err: /--words/ },
    "printed and copied": { args: ["generate", "gen/x", "-p", "-c"], exit: 2, err: /--copy/ },
    "--clear-after without --copy": { args: ["generate", "gen/x", "--clear-after", "9s"], exit: 2, err: /--copy/ },
    "get with --clear-after but without --copy": {
      args: ["get", "tls/key", "--clear-after", "9s"],
      exit: 2,
      err: /--copy/,
    },
    "a dry run": { args: ["generate", "gen/x", "--dry-run", "--print"], exit: 0, out: /would be stored/ },
  });
});
