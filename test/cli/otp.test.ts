/** `strongroom otp`: which secret the code is of, and how it is printed. */
import { expect } from "chai";
import { needs } from "../../tools/rig/needs.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustInit, mustPut } from "../../tools/rig/test-client.js";
import { hasPython, runOnTerminal } from "../support/pseudo-terminal.js";
import { must, testRows } from "./command-rows.js";

const seed = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";

describe("strongroom otp", () => {
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "web/wiki/totp", `otpauth://totp/me?secret=${seed}&digits=8`);
    await mustPut(started, "web/wiki", "a password beside the codes");
    await mustPut(started, "web/bare", seed);
    await mustPut(started, "web/slow", `otpauth://totp/me?secret=${seed}&period=7200`);
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
    "a period out of range": {
      args: ["otp", "web/slow"],
      exit: 2,
      err: /web\/slow .* period must be 1 to 3600 seconds/,
    },
    "a missing path": { args: ["otp", "web/bara"], exit: 4, err: /Did you mean web\/bare\?/ },
  });

  it("otp on a terminal ends the code's line and shows how long it is valid", async function () {
    needs(this, hasPython(), "Python");
    const { shown } = await runOnTerminal(["otp", "web/bare"], { question: "never asked" }, here());
    expect(shown).to.match(/^\d{6}\r\nvalid for \d+ s\r\n$/);
  });

  it("find lists imported one-time codes by their mark, and otp prints them", async () => {
    const item = { name: "Shop", login: { password: "pw", totp: seed } };
    const source = JSON.stringify({ encrypted: false, items: [item] });
    await must(here(), ["import", "--format", "bitwarden", "--prefix", "import", "-"], source);
    expect(await must(here(), ["find", "one-time codes"])).to.equal("import/Shop/totp\n");
    expect(await must(here(), ["otp", "import/Shop"])).to.match(/^\d{6}$/);
  });
});
