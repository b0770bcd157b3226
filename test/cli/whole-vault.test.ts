/** A slash as the whole vault, and empty lists: each command that takes a path or a folder. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { commands } from "../../src/cli/command-table.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { shareLocalServer, type TestServer } from "../../tools/rig/server.js";
import { mustInit, mustPut } from "../../tools/rig/test-client.js";
import { runHere } from "../support/command-here.js";
import { must, strongroom } from "./command-rows.js";

const local = ({ home }: TestServer) => ({ STRONGROOM_HOME: home, NO_COLOR: "1" });
const words = (call: string) => call.split(" ");

/** Calls in which a slash takes the whole vault, and calls that do the same without it. */
const taking: readonly (readonly [withSlash: string, without: string])[] = [
  ["ls /", "ls"],
  ["check /", "check"],
  ["export --plaintext --format json --prefix /", "export --plaintext --format json"],
  ["scan --prefix /", "scan"],
  ["import --dry-run --format dotenv --prefix / -", "import --dry-run --format dotenv -"],
  ["cp app/key / --dry-run", "cp app/key key --dry-run"],
  ["mv app/key / --dry-run --json", "mv app/key key --dry-run --json"],
  ["trash ls /", "trash ls"],
  ["use ls /", "use ls"],
  ["token create everything --path / --dry-run", "token create everything --dry-run"],
  ["agent run --use / --no-sandbox -- echo started", "agent run --no-sandbox -- echo started"],
  ["mcp --use /", "mcp"],
  ["pick / --menu fzf --clear-after 0", "pick --menu fzf --clear-after 0"],
];

/** Returns the variables with which stand-ins are found: a menu that takes its first line, a clipboard, and the MCP server's package. */
function standIns(): Readonly<Record<string, string>> {
  const directory = temporaryDirectory();
  const programs = { fzf: "head -n 1", xsel: "cat > /dev/null", "strongroom-mcp": 'echo "started with: $*"' };
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(directory, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }
  return { PATH: `${directory}:/usr/bin:/bin`, DISPLAY: ":0" };
}

const withoutName = (text: string) => text.replace(/^session agent-\w+/, "session");

const onePath =
  /^strongroom: (?:--\w+: |\/: )?this is the whole vault, and one path is needed, such as app\/db\/password$/m;
const folderInItself = /^strongroom: a folder cannot be put into itself: nothing was done$/m;

/** Calls that refuse the whole vault, with the reason. */
const refusing: readonly (readonly [call: string, reason: RegExp])[] = [
  ...[
    ["get", "put", "generate", "edit", "describe", "otp", "history", "undo", "rm", "trash rm", "use add", "use rm"],
    ["encrypt", "decrypt", "sign", "verify --signature x", "age recipient", "age identity"],
    ["transit create", "transit show", "transit rotate", "transit config", "transit rm", "transit import"],
    ["credential aws", "credentials --dir x", "keyring --foreground --prefix"],
  ]
    .flat()
    .map((call) => [`${call} /${call.startsWith("use ") ? " host" : ""}`, onePath] as const),
  ["rm -r /", /^strongroom: this would delete every secret: delete its folders one by one, or replace the vault/m],
  ["mv / x/", folderInItself],
  ["cp / x/", folderInItself],
  ["transit ls /", /^strongroom: ls takes no name/m],
];

/** Commands without a path of the vault, though their help has such a word, and `browse`, which needs a terminal (browse.test.ts). */
const elsewhere = ["allow", "config", "serve", "up", "find", "run", "browse"];

describe("a slash as a path", () => {
  const server = shareLocalServer({ brokerPort: 0 }, async (started) => {
    await mustInit(started);
    for (const path of ["app/key", "gone"]) await mustPut(started, path, "value of a secret");
    await must(local(started), ["rm", "gone"]);
    await must(local(started), ["use", "add", "app/key", "api.example.com"]);
  });

  for (const [call, same] of taking) {
    it(`${call} means the whole vault`, async () => {
      const environment = { ...local(server()), ...standIns() };
      const found = await runHere(words(call), environment, "A=1");
      const wanted = await runHere(words(same), environment, "A=1");
      expect(found).to.include({ code: 0, stdout: wanted.stdout });
      expect(withoutName(found.stderr)).to.equal(withoutName(wanted.stderr));
      expect(found.stdout).to.not.equal("");
    });
  }

  it("audit show --path / means the whole vault", async () => {
    const shown = await must(local(server()), ["audit", "show", "--path", "/"]);
    expect(shown).to.match(/ app\/key .* gone /s);
  });

  for (const [call, reason] of refusing) {
    it(`${call} is refused with the reason`, async () => {
      const { code, stderr, stdout } = await runHere(words(call), local(server()));
      expect(stderr).to.match(reason);
      expect({ code, stdout }).to.deep.equal({ code: 2, stdout: "" });
    });
  }

  it("each command whose help names a path has a row", async () => {
    const rows = new Set([...taking, ...refusing].map(([call]) => words(call)[0]));
    const named: string[] = [];
    for (const { name } of commands) {
      const { stdout } = await runHere([name, "--help"], {});
      if (/^ +(?:path|name|folder|from|secret|prefix) |^ +--(?:path|prefix|use)\b/m.test(stdout)) named.push(name);
    }
    expect(named).to.have.length.above(20);
    expect(named.filter((name) => !rows.has(name) && !elsewhere.includes(name) && name !== "audit")).to.deep.equal([]);
  });
});

describe("lists of an empty vault", () => {
  const server = shareLocalServer({}, async (started) => void (await mustInit(started)));
  const noSecrets = "the vault has no secrets: store one with  strongroom put PATH\n";
  const nothingExpires = "nothing has expired or expires within this time\n";

  for (const [call, message] of [
    ["ls", noSecrets],
    ["ls /", noSecrets],
    ["ls / --expiring 5d", nothingExpires],
    ["trash ls", "the trash is empty\n"],
    ["trash ls /", "the trash is empty\n"],
    ["trash ls app/", "nothing in the trash begins with app/\n"],
    ["use ls /", "no secret is bound to a host: strongroom use add  binds one\n"],
    ["token ls", "no client tokens: strongroom token create  makes one\n"],
    ["transit ls", "no transit keys: strongroom transit create  makes one\n"],
  ] as const) {
    it(`${call} says on a terminal that there is nothing, and prints nothing elsewhere or with --quiet`, async () => {
      const shown = await runHere(words(call), local(server()), "", { columns: 80 });
      expect(shown).to.include({ code: 0, stdout: "", stderr: message });
      const quiet = await runHere([...words(call), "--quiet"], local(server()), "", { columns: 80 });
      expect(quiet).to.include({ code: 0, stdout: "", stderr: "" });
      expect(await runHere(words(call), local(server()))).to.include({ code: 0, stdout: "", stderr: "" });
    });
  }

  it("check and export of an empty vault print the same for / as for the whole vault", async () => {
    expect(await must(local(server()), ["check", "/"])).to.equal(await must(local(server()), ["check"]));
    const exported = ["export", "--format", "json", "--plaintext"] as const;
    const all = await must(local(server()), exported);
    expect(await must(local(server()), [...exported, "--prefix", "/"])).to.equal(all);
  });

  it("run --prefix / fails in an empty vault", async () => {
    const ran = await strongroom(local(server()), ["run", "--prefix", "/", "--", "true"]);
    expect(ran).to.include({ code: 4, stderr: `strongroom: ${noSecrets}` });
  });
});
