/** No command passes on what controls a terminal, changes the order of its text or is not seen, from names and descriptions. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { mainFile, node } from "../../tools/rig/process.js";
import { passphrase, shareLocalServer } from "../../tools/rig/server.js";
import { mustInit, mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";
import { hasPython, runProgramOnTerminal } from "../support/pseudo-terminal.js";

/** A path may have these: bidi controls, a tag, and fillers, which are letters that no font shows. */
const hidden = "\u202e\u{e0041}\u3164\u115f\uffa0";
const path = `odd/${hidden}`;
/** Other texts may also have these: escape sequences of two kinds. */
const controls = `${hidden}\u001b[31m\u009b31m`;
/** Long enough for scan. */
const longText = "quiet-lamp-river-song-42";
const forbidden = [...hidden, "\u009b", "\u001b[31m"];

describe("texts that could mislead on a terminal", () => {
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    const post = async (path: string, body: object) =>
      mustSucceed(await send(started, { method: "POST", path, body: { ...body } }));
    await mustPut(started, path, { value: longText, description: controls });
    await mustPut(started, `${path}/same`, { value: longText, description: controls });
    await mustPut(started, "odd/value", controls);
    await mustPut(started, `gone/${hidden}`, "v");
    await post(`/v1/trash/${encodeURIComponent(`gone/${hidden}`)}`, {});
    await post("/v1/tokens", { name: "odd", can: ["get"], paths: [path, `${path}/`] });
    await post("/v1/keys", { passphrase, label: "\u3164\uffa0" });
    await post(`/v1/transit/keys/${encodeURIComponent(path)}`, { type: "ed25519" });
    const use = { host: "api.example", header: "authorization", format: "Bearer {}" };
    mustSucceed(await send(started, { method: "PUT", path: `/v1/uses/${encodeURIComponent(path)}`, body: use }));
  });
  before(function () {
    needs(this, hasPython(), "Python");
  });

  function newProject(): string {
    const directory = temporaryDirectory();
    mkdirSync(join(directory, hidden));
    writeFileSync(join(directory, hidden, `${controls}.txt`), `${longText}\n`);
    writeFileSync(join(directory, `${hidden}.env`), `A=strongroom://${encodeURIComponent(path)}\nwhat\n`);
    return directory;
  }

  /** Each with a text that must be shown. */
  const commands: readonly (readonly [readonly string[], string])[] = [
    [["ls"], "u{3164}"],
    [["ls", "--long"], "u{9b}31m"],
    [["ls", "--json"], "\\u3164"],
    [["find", "odd"], "u{115f}"],
    [["describe", path], "u{9b}31m"],
    [["describe", path, "--json"], "\\u009b31m"],
    [["get", `${path}x`], "u{e0041}"],
    [["get", `${path}#field`], "u{e0041}"],
    [["otp", `none/${hidden}`], "u{ffa0}"],
    [["history", path], "u{ffa0}"],
    [["undo", path], "u{ffa0}"],
    [["cp", path, `copy/${hidden}`], "u{ffa0}"],
    [["rm", `copy/${hidden}`, "--yes"], "u{ffa0}"],
    [["rm", `none/${hidden}`, "--yes"], "u{ffa0}"],
    [["trash", "ls"], "u{ffa0}"],
    [["token", "ls"], "u{ffa0}"],
    [["key", "ls"], "u{3164}"],
    [["transit", "ls"], "u{3164}"],
    [["transit", "show", path], "u{3164}"],
    [["use", "ls"], "u{3164}"],
    [["audit", "show"], "u{3164}"],
    [["check", "odd/"], "u{3164}"],
    [["scan"], "u{9b}31m"],
    [["run", "--prefix", `none/${hidden}`, "--", "true"], "u{202e}"],
    [["run", "--set", `A=${path}`, "--print-names"], "u{202e}"],
    [["run", "-e", `${hidden}.env`, "--", "true"], "u{202e}"],
    [["import", `${hidden}.env`], "u{202e}"],
    [["import", `${hidden}.env`, "--prefix", `/${hidden}`], "u{202e}"],
    [["inject", "-i", `${hidden}.env`, "-o", `${hidden}.out`], "u{202e}"],
    [["inject", "-i", `none${hidden}`], "u{202e}"],
    [["export", "--format", "json", "--plaintext", "--prefix", "odd/"], "\\u3164"],
    [["token", "revoke", `none${hidden}`], "invalid token name"],
    [["key", "rm", hidden], "u{202e}"],
    [["trash", "rm", hidden, "--yes"], "u{202e}"],
    [["mv", `none/${hidden}`, path], "u{202e}"],
    [[hidden], "u{202e}"],
    [["get", "--address", `https://${controls}`, "a"], "https://"],
    [["get", "--home", `/none/${controls}`, "a"], "strongroom"],
    [["doctor", "--home", `/none/${controls}`], "u{9b}31m"],
    [["restore", `/none/${controls}`, "--home", "/none/a"], "u{9b}31m"],
  ];

  it("all commands escape texts that could mislead on a terminal", async () => {
    const quoted = (words: readonly string[]) => words.map((word) => `'${word}'`).join(" ");
    const script = commands.map(([args], i) => `${quoted([node, mainFile, ...args])}; echo "<end ${i}>"`).join("\n");
    const file = join(temporaryDirectory(), "script");
    writeFileSync(file, `cd ${newProject()}\nset +e\n${script}\n`);
    const here = { STRONGROOM_HOME: server().home, NO_COLOR: "1" };
    const { shown } = await runProgramOnTerminal(["/bin/sh", file], [], here, [24, 1000]);
    let at = 0;
    const wrong: string[] = [];
    for (const [i, [args, wanted]] of commands.entries()) {
      const end = shown.indexOf(`<end ${i}>`, at);
      const output = shown.slice(at, end);
      at = end;
      if (forbidden.some((text) => output.includes(text)) || !output.includes(wanted))
        wrong.push(JSON.stringify([args.join(" "), output]));
    }
    expect(wrong).to.deep.equal([]);
  });
});
