/** `strongroom edit`: what is stored, and that the plaintext file is always removed. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import pMap from "p-map";
import { diskDirectory, later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { collect, type Ended, environment, mainFile, node, run } from "../../tools/rig/process.js";
import { shareLocalServer, startLocalServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustListPaths, mustPut, mustUnlock } from "../../tools/rig/test-client.js";
import { hasPython, runOnTerminal } from "../support/pseudo-terminal.js";
import { must, strongroom } from "./command-rows.js";

describe("strongroom edit", () => {
  const server = shareLocalServer({}, mustInit);
  /** A directory in memory for this run alone: any leftover in it is ours. */
  let memory = "";
  const here = () => ({ STRONGROOM_HOME: server().home, XDG_RUNTIME_DIR: memory });
  before(function () {
    needs(this, existsSync("/dev/shm"), "/dev/shm");
    memory = mkdtempSync("/dev/shm/strongroom-test-");
    later(() => rmSync(memory, { recursive: true }));
  });
  afterEach(() => expect(readdirSync(memory)).to.deep.equal([]));

  /** Runs an editor that is a line of shell; the file is `$1`. */
  const edit = (does: string, flags: readonly string[] = [], path = "a") =>
    strongroom({ ...here(), VISUAL: `sh -c '${does}' sh` }, ["edit", path, ...flags]);

  const rows: readonly (readonly [string, string | null, string, readonly string[], number, string | null])[] = [
    ["stores a changed value", "old", "printf new > $1", [], 0, "new"],
    ["drops the newline that an editor adds", "old", "echo new > $1", [], 0, "new"],
    ["drops the CR LF that an editor adds", "old", 'printf "new\\r\\n" > $1', [], 0, "new"],
    ["keeps CR LF within the value", "a\r\nb", 'printf "c\\r\\nd\\r\\n" > $1', [], 0, "c\r\nd"],
    ["keeps CR LF at the end where the value had it", "a\r\n", 'printf "c\\r\\n" > $1', [], 0, "c\r\n"],
    ["keeps a CR at the end where the value had it", "a\r", 'printf "b\\r\\n" > $1', [], 0, "b\r"],
    ["drops the byte order mark that an editor adds", "old", 'printf "\\357\\273\\277new\\r\\n" > $1', [], 0, "new"],
    ["stores nothing when only a byte order mark was added", "old", 'printf "\\357\\273\\277old" > $1', [], 0, "old"],
    [
      "keeps a byte order mark that the value had before",
      "\ufeffa",
      'printf "\\357\\273\\277b" > $1',
      [],
      0,
      "\ufeffb",
    ],
    ["keeps a byte order mark with --raw", "old", 'printf "\\357\\273\\277new" > $1', ["--raw"], 0, "\ufeffnew"],
    ["cancels when there is only a byte order mark", "old", 'printf "\\357\\273\\277" > $1', [], 13, "old"],
    ["stores nothing when only CR LF was added", "old", 'printf "\\r\\n" >> $1', [], 0, "old"],
    ["keeps that newline with --raw", "old", "echo new > $1", ["--raw"], 0, "new\n"],
    ["keeps a newline that the value had before", "a\nb\n", "echo c >> $1", [], 0, "a\nb\nc\n"],
    ["stores nothing without a change", "old", "true", [], 0, "old"],
    ["stores nothing when only a newline was added", "old", "echo >> $1", [], 0, "old"],
    ["cancels on an empty file", "old", ": > $1", [], 13, "old"],
    ["cancels when the editor fails", "old", "echo new > $1; exit 3", [], 13, "old"],
    ["creates a missing secret", null, "echo new > $1", [], 0, "new"],
    ["creates none from an empty file", null, "true", [], 13, null],
    ["stores nothing with --dry-run", "old", "echo new > $1", ["--dry-run"], 0, "old"],
    ["cancels when the editor removes the file", "old", "rm $1", [], 13, "old"],
    ["rejects a value that is not UTF-8", "old", 'printf "\\377" > $1', [], 2, "old"],
    ["rejects a value that is not UTF-8, also with --dry-run", "old", 'printf "\\377" > $1', ["--dry-run"], 2, "old"],
    ["rejects a value that is too large", "old", "head -c 1048577 /dev/zero > $1", [], 2, "old"],
    [
      "rejects a value that is too large, also with --dry-run",
      "old",
      "head -c 1048577 /dev/zero > $1",
      ["--dry-run"],
      2,
      "old",
    ],
  ];
  it("edit says that an editor returned at once", async () => {
    await mustPut(server(), "edit/at-once", "old");
    expect((await edit("true", [], "edit/at-once")).stdout).to.contain("--wait");
    expect((await edit("true", [], "edit/at-once-new")).stderr).to.contain("--wait");
    expect((await edit("(sleep 1; echo late > $1) >&- 2>&- &", [], "edit/at-once")).stdout).to.contain("--wait");
    expect((await edit("echo new > $1", [], "edit/at-once")).stdout).not.to.contain("--wait");
    expect((await edit("sleep 1.1", [], "edit/at-once")).stdout)
      .to.contain("unchanged")
      .and.not.to.contain("--wait");
  });

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
        else expect(await mustListPaths(server(), "edit/")).not.to.include(`edit/${what}`);
      });
    }

    it("edit says why a value is rejected", () => {
      const said = rows.filter(([, , , , exit]) => exit === 2).map(([what]) => ended.get(what)?.stderr);
      const reason = /^strongroom: the value (?:is not UTF-8|is 1,048,577 bytes).*: nothing was stored\n$/;
      for (const stderr of said) expect(stderr).to.match(reason);
    });
  });

  it("edit prints its result as JSON", async () => {
    await mustPut(server(), "a", "old");
    expect((await edit("true", ["--json"])).stdout).to.equal('{"ok":true,"path":"a","changed":false}\n');
    const { stdout } = await edit("echo new > $1", ["--json"]);
    expect(stdout).to.equal('{"ok":true,"path":"a","changed":true,"bytes":3}\n');
  });

  it("edit exits 2 and names the variables to set when the editor is not found", async () => {
    const { code, stderr } = await strongroom({ ...here(), VISUAL: "", EDITOR: "no-such-editor" }, ["edit", "a"]);
    expect(code).to.equal(2);
    expect(stderr).to.contain("no-such-editor").and.to.contain("EDITOR");
  });

  it("edit keeps the file private and in memory, and removes what the editor leaves beside it", async () => {
    const told = join(temporaryDirectory(), "told");
    const does = `stat -f -c %T $1 > ${told}; stat -c %a $1 >> ${told}; stat -c %a $(dirname $1) >> ${told}; cp $1 $1.swp; mkdir $1.d`;
    expect((await edit(does)).code).to.equal(0);
    expect(readFileSync(told, "utf8")).to.equal("tmpfs\n600\n700\n");
  });

  it("edit overwrites the file before removing it", async () => {
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
    it(`edit ends the editor and leaves nothing on ${signal}`, async () => {
      await mustPut(server(), "a", "old");
      const { child, file } = await startEditing();
      child.kill(signal);
      const ended = await collect(child).ended;
      expect(ended.code).to.equal(null);
      expect(child.signalCode).to.equal(signal);
      expect(existsSync(dirname(file))).to.equal(false);
    });
  }

  it("edit stores and leaves nothing when the editor dies of SIGINT", async () => {
    const { child, file } = await startEditing();
    process.kill(-(child.pid ?? 0), "SIGINT"); // as a terminal does: to all that run in it
    expect((await collect(child).ended).code).to.equal(13);
    expect(existsSync(dirname(file))).to.equal(false);
  });

  /** Starts an edit whose editor writes and then waits. */
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

  it("edit leaves the plaintext of a killed edit to the next command, which overwrites and removes it", async () => {
    const { child, file } = await startEditing();
    const other = await startEditing();
    const kept = join(memory, "kept"); // a second name of the file, which shows its content
    linkSync(file, kept);
    try {
      child.kill("SIGKILL");
      await once(child, "exit"); // its editor still has its streams
      expect(existsSync(file)).to.equal(true);
      await run(["version"], here());
      expect(existsSync(dirname(file))).to.equal(false);
      expect(readFileSync(kept).every((byte) => byte === 0)).to.equal(true);
      expect(existsSync(other.file), "an edit that is still open").to.equal(true);
    } finally {
      rmSync(kept, { force: true });
      for (const { pid = 0 } of [child, other.child]) endGroup(pid);
      if (other.child.signalCode === null) await once(other.child, "exit");
      await run(["version"], here());
    }
  });

  it("edit does not touch a directory of another mode, or a link, that is named like a leftover", async () => {
    const target = temporaryDirectory();
    writeFileSync(join(target, "value"), "precious");
    const name = (suffix: string) => join(memory, `strongroom-edit-${pidNamespace()}-999999999-x-${suffix}`);
    symlinkSync(target, name("AAAAAA"));
    mkdirSync(name("BBBBBB"), { mode: 0o755 });
    try {
      await run(["version"], here());
      expect(readFileSync(join(target, "value"), "utf8")).to.equal("precious");
      expect(existsSync(name("BBBBBB"))).to.equal(true);
    } finally {
      for (const suffix of ["AAAAAA", "BBBBBB"]) rmSync(name(suffix), { recursive: true });
    }
  });

  it("edit removes STRONGROOM_TOKEN from the editor's environment", async () => {
    const shown = join(temporaryDirectory(), "shown");
    const environment = {
      ...here(),
      STRONGROOM_TOKEN: server().token,
      KEPT: "kept",
      VISUAL: `sh -c 'env > ${shown}' sh`,
    };
    expect((await strongroom(environment, ["edit", "a"])).code).to.equal(0);
    expect(readFileSync(shown, "utf8")).to.contain("KEPT=kept").and.not.to.contain("STRONGROOM_TOKEN");
  });

  const pidNamespace = () => readlinkSync("/proc/self/ns/pid").replace(/\D/g, "");

  function endGroup(pid: number): void {
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // all of it has ended
    }
  }

  it("edit fails without a directory in memory, unless a disk is allowed", async function () {
    const disk = diskDirectory(); // the mount hides what lies in memory
    const mount = `mount --bind ${disk} /dev/shm`;
    const tried = spawnSync("unshare", [
      "--mount",
      "sh",
      "-c",
      `${mount} && test "$(stat -f -c %T /dev/shm)" != tmpfs`,
    ]);
    needs(this, tried.status === 0, "root, and a temporary directory on a disk");
    const server = await startLocalServer({ home: join(disk, "home") });
    await mustInit(server);
    await mustPut(server, "a", "old");
    const editor = { STRONGROOM_HOME: server.home, VISUAL: "sh -c 'echo new > $1' sh" };
    const run = (flags: string) => {
      const command = `${mount} && exec "${node}" "${mainFile}" edit a ${flags}`;
      const child = spawn("unshare", ["--mount", "sh", "-c", command], {
        env: environment({ HOME: disk, TMPDIR: disk, ...editor }),
        stdio: ["ignore", "pipe", "pipe"],
      });
      return collect(child).ended;
    };
    const refused = await run("");
    expect(refused.code).to.equal(1);
    expect(refused.stderr).to.contain("--on-disk");
    expect((await run("--on-disk")).code).to.equal(0);
    expect((await mustGet(server, "a"))["value"]).to.equal("new");
  });

  it("edit keeps an edit when the vault has locked itself during it", async function () {
    needs(this, hasPython(), "Python");
    await mustPut(server(), "a", "old");
    const logged = server().logged().length;
    const reactions = Array.from({ length: 100 }, () => ({ question: "try again? [y/N]", keys: "y\r" }));
    const does = `echo new > $1; "${node}" "${mainFile}" lock -q`;
    const environment = { ...here(), VISUAL: `sh -c '${does}' sh` };
    const editing = runOnTerminal(["edit", "a", "--non-interactive"], reactions, environment);
    while (!/"status":403/.test(server().logged().slice(logged)))
      await new Promise((resolve) => setTimeout(resolve, 10));
    await mustUnlock(server());
    const { code, shown } = await editing;
    expect(code, shown).to.equal(0);
    expect(shown).to.contain("the vault is locked: unlock it with  strongroom unlock");
    expect((await mustGet(server(), "a"))["value"]).to.equal("new");
  });

  it("edit offers another edit of what was typed when it cannot be stored", async function () {
    needs(this, hasPython(), "Python");
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

  describe("changes during an edit", () => {
    /** The editor's user types `mine` while another program stores `theirs`. */
    const race = (path: string) => `printf theirs | "${node}" "${mainFile}" put ${path} -q; echo mine > $1`;
    const stored = async (path: string) => (await mustGet(server(), path))["value"];

    it("a secret changed during an edit stays without a terminal, and the edit is kept under a free path", async () => {
      await mustPut(server(), "race/a", { value: "old", type: "other" });
      await mustPut(server(), "race/a.edited-1", "taken");
      const { code, stdout, stderr } = await edit(race("race/a"), [], "race/a");
      expect({ code, stdout }, stderr).to.deep.equal({ code: 7, stdout: "" });
      expect(stderr).to.contain("race/a has changed since you opened it; your text is in race/a.edited-2");
      expect(stderr).to.contain("strongroom mv -f race/a.edited-2 race/a");
      expect(await stored("race/a")).to.equal("theirs");
      expect(await stored("race/a.edited-1")).to.equal("taken");
      expect(await mustGet(server(), "race/a.edited-2")).to.deep.include({
        value: "mine",
        metadata: { type: "other" },
      });
    });

    it("a secret created or deleted during an edit stays so, and the edit is kept next to it", async () => {
      expect((await edit(race("race/created"), [], "race/created")).code).to.equal(7);
      expect([await stored("race/created"), await stored("race/created.edited-1")]).to.deep.equal(["theirs", "mine"]);
      await mustPut(server(), "race/deleted", "old");
      const deletes = `"${node}" "${mainFile}" rm -f race/deleted -q; echo mine > $1`;
      expect((await edit(deletes, [], "race/deleted")).code).to.equal(7);
      expect((await strongroom(here(), ["get", "race/deleted"])).code).to.equal(4);
      expect(await stored("race/deleted.edited-1")).to.equal("mine");
    });

    it("a secret changed during an edit can be edited again on a terminal, from the text that was typed", async function () {
      needs(this, hasPython(), "Python");
      await mustPut(server(), "race/b", "old");
      const script = join(temporaryDirectory(), "editor");
      const again = 'if grep -q mine "$1"; then echo "mine and theirs" > "$1"; exit; fi';
      writeFileSync(script, `#!/bin/sh\n${again}\n${race("race/b").replace("$1", '"$1"')}\n`, { mode: 0o755 });
      const question = "race/b has changed since you opened it. Edit your text again, to replace the new value? [y/N]";
      const environment = { ...here(), VISUAL: script };
      const { code, shown } = await runOnTerminal(["edit", "race/b"], { question, keys: "y\r" }, environment);
      expect(code, shown).to.equal(0);
      expect(await stored("race/b")).to.equal("mine and theirs");
      expect(await must(here(), ["get", "race/b", "--version", "2"]), "what is replaced stays").to.equal("theirs");
    });
  });

  it("edit stores nothing when the vault has locked itself and there is no second try", async () => {
    await mustPut(server(), "a", "old");
    const { code } = await edit(`echo new > $1; "${node}" "${mainFile}" lock -q`);
    expect(code).to.equal(3);
    await mustUnlock(server());
    expect((await mustGet(server(), "a"))["value"]).to.equal("old");
  });
});
