/** `strongroom otp`: one-time codes against the vectors of RFC 6238, and the command. */
import { expect } from "chai";
import { oneTimeCode } from "../../src/cli/commands/otp.js";
import { CommandFailure } from "../../src/cli/lib/errors.js";
import { hasPython, runOnTerminal } from "../support/pseudo-terminal.js";
import { shareTestServer } from "../support/server.js";
import { mustInit, mustPut } from "../support/test-client.js";
import { must, testRows } from "./command-rows.js";

/** RFC 6238, appendix B: the ASCII digits 1 to 0, repeated up to the hash's length, in base32. */
const keys = {
  SHA1: "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ",
  SHA256: "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZA",
  SHA512: "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNA",
} as const;

const vectors: readonly (readonly [keyof typeof keys, number, string])[] = [
  ["SHA1", 59, "94287082"],
  ["SHA256", 59, "46119246"],
  ["SHA512", 59, "90693936"],
  ["SHA1", 1_111_111_109, "07081804"],
  ["SHA256", 1_111_111_109, "68084774"],
  ["SHA512", 1_111_111_109, "25091201"],
  ["SHA1", 20_000_000_000, "65353130"],
  ["SHA256", 20_000_000_000, "77737706"],
  ["SHA512", 20_000_000_000, "47863826"],
];

function codeAt(seconds: number, value: string) {
  return oneTimeCode(value, { now: seconds * 1000, where: "a/b" });
}

describe("a one-time code", () => {
  for (const [algorithm, seconds, code] of vectors) {
    it(`agrees with RFC 6238: ${algorithm} at ${seconds} s`, () => {
      const url = `otpauth://totp/Issuer:me?secret=${keys[algorithm]}&issuer=Issuer&algorithm=${algorithm}&digits=8`;
      expect(codeAt(seconds, url).code).to.equal(code);
    });
  }

  it("has 6 digits and 30 seconds for a base32 secret, however it is spelled", () => {
    const spellings = [keys.SHA1, ` ${keys.SHA1.toLowerCase()}\n`, keys.SHA1.replace(/.{4}/g, "$& "), `${keys.SHA1}==`];
    for (const value of spellings) {
      expect(codeAt(59, value)).to.deep.equal({ code: "287082", secondsLeft: 1, period: 30 });
    }
  });

  it("honours the period of an otpauth URL", () => {
    const url = `otpauth://totp/me?secret=${keys.SHA1}&period=60&digits=8`;
    expect(codeAt(119, url)).to.deep.equal({ code: "94287082", secondsLeft: 1, period: 60 });
    expect(codeAt(60, url).secondsLeft).to.equal(60);
  });

  const refused: Readonly<Record<string, string>> = {
    "a counter": `otpauth://hotp/me?secret=${keys.SHA1}&counter=1`,
    "no secret": "otpauth://totp/me?digits=6",
    "an unknown algorithm": `otpauth://totp/me?secret=${keys.SHA1}&algorithm=MD4`,
    "a password": "hunter2 hunter8",
    "an empty value": "",
  };
  for (const [what, value] of Object.entries(refused)) {
    it(`is refused for ${what}, and the value is not quoted`, () => {
      expect(() => codeAt(59, value))
        .to.throw(CommandFailure, /^a\/b /)
        .with.property("message")
        .that.does.not.match(/GEZD|hunter/);
    });
  }
});

describe("strongroom otp", () => {
  const server = shareTestServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "web/wiki/totp", `otpauth://totp/me?secret=${keys.SHA1}&digits=8`);
    await mustPut(started, "web/wiki", "a password beside the codes");
    await mustPut(started, "web/bare", keys.SHA1);
    await mustPut(started, "web/password", "no secret of codes");
  });
  const here = () => ({ STRONGROOM_HOME: server().home });

  testRows(here, {
    "a code from a URL": { args: ["otp", "web/wiki/totp"], exit: 0, out: /^\d{8}$/ },
    "a code from the folder of an item": { args: ["otp", "web/wiki"], exit: 0, out: /^\d{8}$/ },
    "a code as JSON": {
      args: ["otp", "web/bare", "--json"],
      exit: 0,
      out: /^\{"path":"web\/bare","code":"\d{6}","secondsLeft":\d+,"period":30\}\n$/,
    },
    "a password": { args: ["otp", "web/password"], exit: 2, err: /web\/password is neither an otpauth/ },
    "a missing path": { args: ["otp", "web/bara"], exit: 4, err: /Did you mean web\/bare\?/ },
  });

  it("ends the code's line and shows how long it is valid on a terminal", async function () {
    if (!hasPython()) this.skip();
    const { shown } = await runOnTerminal(["otp", "web/bare"], { question: "never asked" }, here());
    expect(shown).to.match(/^\d{6}\r\nvalid for \d+ s\r\n$/);
  });

  it("finds imported secrets by their mark, and prints their codes", async () => {
    const item = { name: "Shop", login: { password: "pw", totp: keys.SHA1 } };
    const source = JSON.stringify({ encrypted: false, items: [item] });
    await must(here(), ["import", "--format", "bitwarden", "--prefix", "import", "-"], source);
    expect(await must(here(), ["find", "one-time codes"])).to.equal("import/Shop/totp\n");
    expect(await must(here(), ["otp", "import/Shop"])).to.match(/^\d{6}$/);
  });
});
