/** `strongroom edit`: what is stored, and that the file with the plaintext is never left behind. */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import pMap from "p-map";
import { later, temporaryDirectory } from "../support/clean-up.js";
import { collect, type Ended, environment, mainFile, node } from "../support/process.js";
import { hasPython, runOnTerminal } from "../support/pseudo-terminal.js";
import { shareTestServer } from "../support/server.js";
import { mustGet, mustInit, mustPut, mustUnlock } from "../support/test-client.js";
import { must, strongroom } from "./command-rows.js";

describe("strongroom edit", () => {
  const server = shareTestServer({}, mustInit);
  /** A directory of this run alone, in memory: what is left behind in it is ours. */
  let memory = "";
  const here = () => ({ STRONGROOM_HOME: server().home, XDG_RUNTIME_DIR: memory });
  before(function () {
    if (!existsSync("/dev/shm")) this.skip(); // no directory here is sure to be in memory
    memory = mkdtempSync("/dev/shm/strongroom-test-");
    later(() => rmSync(memory, { recursive: true }));
  });
  afterEach(() => expect(readdirSync(memory)).to.deep.equal([]));

  /** What the editor does; the file is its last argument. */
  const edit = (does: string, flags: readonly string[] = [], path = "a") =>
    strongroom({ ...here(), VISUAL: `sh -c '${does}' sh` }, ["edit", path, ...flags]);

  const rows: readonly (readonly [string, string | null, string, readonly string[], number, string | null])[] = [
    ["stores what was changed", "old", "printf new > $1", [], 0, "new"],
    ["drops the newline that an editor adds", "old", "echo new > $1", [], 0, "new"],
    ["keeps it with --raw", "old", "echo new > $1", ["--raw"], 0, "new\n"],
    ["keeps a newline that was there before", "a\nb\n", "echo c >> $1", [], 0, "a\nb\nc\n"],
    ["stores nothing when nothing was changed", "old", "true", [], 0, "old"],
    ["stores nothing when only a newline was added", "old", "echo >> $1", [], 0, "old"],
    ["breaks off at an empty file", "old", ": > $1", [], 13, "old"],
    ["breaks off when the editor fails", "old", "echo new > $1; exit 3", [], 13, "old"],
    ["makes a secret that was not there", null, "echo new > $1", [], 0, "new"],
    ["makes none of an empty file", null, "true", [], 13, null],
    ["only says what it would do", "old", "echo new > $1", ["--dry-run"], 0, "old"],
    ["breaks off when the editor removes the file", "old", "rm $1", [], 13, "old"],
    ["refuses what is not UTF-8", "old", 'printf "\\377" > $1', [], 2, "old"],
    ["refuses what is not UTF-8 in a trial, too", "old", 'printf "\\377" > $1', ["--dry-run"], 2, "old"],
    ["refuses what is too large", "old", "head -c 1048577 /dev/zero > $1", [], 2, "old"],
    ["refuses what is too large in a trial, too", "old", "head -c 1048577 /dev/zero > $1", ["--dry-run"], 2, "old"],
  ];
  describe("rows", () => {
    const ended = new Map<string, Ended>();
    const metadata = { type: "other", description: "d" };
    before(() => pMap(rows, runRow, { concurrency: 4 }));

    async function runRow([what, before, does, flags]: (typeof rows)[number]): Promise<void> {
      const path = `edit/${what}`;
      if (before !== null) await mustPut(server(), path, { value: before, ...metadata });
      ended.set(what, await edit(does, flags, path));
    }

    for (const [what, before, , , exit, want] of rows) {
      it(`edit ${what}: exit ${exit}`, async () => {
        const { code, stderr } = ended.get(what) ?? { code: null, stderr: "it has not run" };
        expect(code, stderr).to.equal(exit);
        const kept = before === null ? {} : metadata;
        if (want !== null)
          expect(await mustGet(server(), `edit/${what}`)).to.deep.include({ value: want, metadata: kept });
        else expect(await must(here(), ["ls", `edit/${what}`])).to.equal("");
      });
    }

    it("edit says what is wrong with a value that it refuses", () => {
      const said = rows.filter(([, , , , exit]) => exit === 2).map(([what]) => ended.get(what)?.stderr);
      const reason = /^strongroom: the value (?:is not UTF-8|has 1048577 bytes).*: nothing was stored\n$/;
      for (const stderr of said) expect(stderr).to.match(reason);
    });
  });

  it("says what it did as JSON", async () => {
    await mustPut(server(), "a", "old");
    expect((await edit("true", ["--json"])).stdout).to.equal('{"ok":true,"path":"a","changed":false}\n');
    const { stdout } = await edit("echo new > $1", ["--json"]);
    expect(stdout).to.equal('{"ok":true,"path":"a","changed":true,"bytes":3}\n');
  });

  it("an editor that is not there exits 2 and says what to set", async () => {
    const { code, stderr } = await strongroom({ ...here(), VISUAL: "", EDITOR: "no-such-editor" }, ["edit", "a"]);
    expect(code).to.equal(2);
    expect(stderr).to.contain("no-such-editor").and.to.contain("EDITOR");
  });

  it("the file is in memory, and nobody else can read it; what the editor leaves beside it goes, too", async () => {
    const told = join(temporaryDirectory(), "told");
    const does = `stat -f -c %T $1 > ${told}; stat -c %a $1 >> ${told}; stat -c %a $(dirname $1) >> ${told}; cp $1 $1.swp; mkdir $1.d`;
    expect((await edit(does)).code).to.equal(0);
    expect(readFileSync(told, "utf8")).to.equal("tmpfs\n600\n700\n");
  });

  it("the file is overwritten before it is removed", async () => {
    await mustPut(server(), "a", "plaintext-canary");
    const kept = join(memory, "kept"); // a second name of the file, which shows what is in it
    try {
      expect((await edit(`ln $1 ${kept}`)).code).to.equal(0);
      expect(readFileSync(kept)).to.deep.equal(Buffer.alloc("plaintext-canary".length));
    } finally {
      rmSync(kept, { force: true });
    }
  });

  for (const signal of ["SIGTERM", "SIGHUP", "SIGQUIT"] as const) {
    it(`${signal} while the editor runs ends both, and nothing is left`, async () => {
      await mustPut(server(), "a", "old");
      const { child, file } = await startEditing();
      child.kill(signal);
      const ended = await collect(child).ended;
      expect(ended.code).to.equal(null);
      expect(child.signalCode).to.equal(signal);
      expect(existsSync(dirname(file))).to.equal(false);
    });
  }

  it("SIGINT is the editor's: when it dies of it, nothing is stored and nothing is left", async () => {
    const { child, file } = await startEditing();
    process.kill(-(child.pid ?? 0), "SIGINT"); // as a terminal does: to all that run in it
    expect((await collect(child).ended).code).to.equal(13);
    expect(existsSync(dirname(file))).to.equal(false);
  });

  /** An editor that writes and then waits. */
  async function startEditing() {
    const told = join(temporaryDirectory(), "told");
    const script = join(temporaryDirectory(), "editor");
    writeFileSync(
      script,
      `#!/bin/sh\necho half >> "$1"\nprintf %s "$1" > ${told}.part\nmv ${told}.part ${told}\nexec sleep 60\n`,
      { mode: 0o755 },
    );
    const child = spawn(node, [mainFile, "edit", "a"], {
      env: environment({ ...here(), VISUAL: script }),
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    while (!existsSync(told)) await new Promise((resolve) => setTimeout(resolve, 10));
    const file = readFileSync(told, "utf8");
    expect(statSync(file).size).to.be.above(0);
    return { child, file };
  }

  it("without a place in memory it refuses, unless a disk is allowed", async function () {
    const mount = `mount --bind ${temporaryDirectory()} /dev/shm`;
    const tried = spawnSync("unshare", [
      "--mount",
      "sh",
      "-c",
      `${mount} && test "$(stat -f -c %T /dev/shm)" != tmpfs`,
    ]);
    if (tried.status !== 0) this.skip(); // it takes root, and a temporary directory that is on a disk
    await mustPut(server(), "a", "old");
    const run = (flags: string) => {
      const command = `${mount} && exec "${node}" "${mainFile}" edit a ${flags}`;
      const child = spawn("unshare", ["--mount", "sh", "-c", command], {
        env: environment({ STRONGROOM_HOME: server().home, VISUAL: "sh -c 'echo new > $1' sh" }),
        stdio: ["ignore", "pipe", "pipe"],
      });
      return collect(child).ended;
    };
    const refused = await run("");
    expect(refused.code).to.equal(1);
    expect(refused.stderr).to.contain("--on-disk");
    expect((await run("--on-disk")).code).to.equal(0);
    expect((await mustGet(server(), "a"))["value"]).to.equal("new");
  });

  it("an edit is not lost when the vault has locked itself meanwhile", async function () {
    if (!hasPython()) this.skip(); // Node cannot make a pseudo-terminal, and there is no Python that could
    await mustPut(server(), "a", "old");
    const logged = server().logged().length;
    const reactions = Array.from({ length: 100 }, () => ({ question: "try again? [y/N]", keys: "y\r" }));
    const does = `echo new > $1; "${node}" "${mainFile}" lock -q`;
    const environment = { ...here(), VISUAL: `sh -c '${does}' sh` };
    const editing = runOnTerminal(["edit", "a"], reactions, environment);
    while (!/"status":403/.test(server().logged().slice(logged)))
      await new Promise((resolve) => setTimeout(resolve, 10));
    await mustUnlock(server());
    const { code, shown } = await editing;
    expect(code, shown).to.equal(0);
    expect(shown).to.contain("the vault is locked: unlock it with  strongroom unlock");
    expect((await mustGet(server(), "a"))["value"]).to.equal("new");
  });

  it("an edit that cannot be stored is edited again, from what was typed", async function () {
    if (!hasPython()) this.skip(); // Node cannot make a pseudo-terminal, and there is no Python that could
    await mustPut(server(), "a", "old");
    const does = 'if grep -q typed "$1"; then echo typed again > "$1"; else printf "typed\\377" > "$1"; fi';
    const script = join(temporaryDirectory(), "editor");
    writeFileSync(script, `#!/bin/sh\n${does}\n`, { mode: 0o755 });
    const question = "edit it again? [y/N]";
    const { code, shown } = await runOnTerminal(
      ["edit", "a"],
      { question, keys: "y\r" },
      { ...here(), VISUAL: script },
    );
    expect(code, shown).to.equal(0);
    expect(shown).to.contain("The value is not UTF-8 text");
    expect((await mustGet(server(), "a"))["value"]).to.equal("typed again");
  });

  it("nothing is stored when the vault has locked itself and nobody wants to try again", async () => {
    await mustPut(server(), "a", "old");
    const { code } = await edit(`echo new > $1; "${node}" "${mainFile}" lock -q`);
    expect(code).to.equal(3);
    await mustUnlock(server());
    expect((await mustGet(server(), "a"))["value"]).to.equal("old");
  });
});
