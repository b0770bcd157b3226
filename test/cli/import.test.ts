/** `strongroom import`: sources, duplicates, interruptions, and an env file with references in the place of its values. */
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { type FileOperations, systemFiles } from "../../src/files/durable.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { environment, mainFile, node } from "../../tools/rig/process.js";
import { shareLocalServer, startLocalServer, type TestServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustList, mustLock, mustPut, mustStatus } from "../../tools/rig/test-client.js";
import { mustDo, mustRefuseWith, start, strongroom } from "./run-command.js";

const values = `# the service
export API_KEY=abc123   # from the console
PASSWORD="with \\n and \\"quotes\\" inside"
EMPTY=
MULTI='first
second # no comment'

PLAIN = spaced value
`;

const references = `# the service
export API_KEY=strongroom://my%20app/API_KEY   # from the console
PASSWORD=strongroom://my%20app/PASSWORD
EMPTY=strongroom://my%20app/EMPTY
MULTI=strongroom://my%20app/MULTI

PLAIN = strongroom://my%20app/PLAIN
`;

describe("strongroom import, through the real command", () => {
  const server = shareLocalServer({ maxValueBytes: 4096 }, mustInit);

  let folders = 0;

  /** A folder of the vault for only one test. */
  function newFolder(): string {
    return `test-${folders++}/`;
  }

  /** All secrets in the folder: `type: value` by path. */
  async function stored(on: TestServer, folder: string): Promise<Record<string, string>> {
    const entries = await mustList(on, `?prefix=${folder}`);
    const rows = entries.map(async ({ path }) => {
      const { value, metadata } = await mustGet(on, path);
      const { type } = metadata as { type?: string };
      return [path.slice(folder.length), type === undefined ? value : `${type}: ${String(value)}`];
    });
    return Object.fromEntries(await Promise.all(rows));
  }

  type Source = { readonly format: string; readonly input: string | object; readonly args?: readonly string[] };

  function importText(folder: string, { format, input, args = [] }: Source, on = server()) {
    const text = typeof input === "string" ? input : JSON.stringify(input);
    return strongroom(on, ["import", "--format", format, "--prefix", folder, ...args, "-"], { input: text });
  }

  describe("sources", () => {
    it("a directory without a format is a password store only where pass has marked it", async () => {
      const [folder, root] = [newFolder(), temporaryDirectory()];
      writeFileSync(join(root, "notes.txt"), "no secret\n");
      const args = ["import", "--prefix", folder, root];
      mustRefuseWith(await strongroom(server(), args), 2, "a directory without .gpg-id", "--format pass");
      writeFileSync(join(root, ".gpg-id"), "me\n");
      expect((await strongroom(server(), args)).code).to.equal(0);
      expect(await stored(server(), folder)).to.deep.equal({ "notes.txt": "password: no secret" });
    });

    it("import rejects an unreadable source and an invalid prefix", async () => {
      mustRefuseWith(await strongroom(server(), ["import", "--format", "json", "/no/such"]), 2, "cannot be read");
      mustRefuseWith(await strongroom(server(), ["import", "--format", "pass", "/no/such"]), 2, "cannot be read");
      mustRefuseWith(await importText("a//b", { format: "json", input: {} }), 2, "--prefix", "empty segment");
    });
  });

  describe("import: secrets that are already stored", () => {
    const source = (value: string, args: readonly string[] = []): Source => {
      return { format: "json", input: { old: value, same: "same", fresh: "fresh" }, args };
    };

    it("stored secrets are skipped and listed, or replaced with --force or --replace; equal ones are unchanged", async () => {
      for (const force of ["--force", "--replace"]) {
        const folder = newFolder();
        await mustPut(server(), `${folder}old`, { value: "was" });
        await mustPut(server(), `${folder}same`, { value: "same" });
        const { code, stdout: first } = await importText(folder, source("is"));
        expect(code, "`import && rm` must keep the file").to.equal(7);
        expect(first).to.contain(`skipped, stored with another value: ${folder}old\n`).and.contain("--replace");
        expect(first).to.match(/^1 created, 0 replaced, 1 unchanged, 1 skipped$/m);
        expect(await stored(server(), folder)).to.deep.equal({ old: "was", same: "same", fresh: "fresh" });
        const second = mustDo(await importText(folder, source("is", [force, "--json"]))).stdout;
        const counts = { created: 0, replaced: 1, unchanged: 2, skipped: [], refused: [], leftOut: [], remarks: [] };
        expect(JSON.parse(second)).to.deep.equal({ ok: true, dryRun: false, total: 3, ...counts });
        expect(await stored(server(), folder)).to.deep.equal({ old: "is", same: "same", fresh: "fresh" });
      }
    });

    it("import --dry-run prints the same summary, and stores nothing", async () => {
      const folder = newFolder();
      await mustPut(server(), `${folder}old`, { value: "was" });
      const input = { old: "is", fresh: "fresh", large: "x".repeat(5000), bad: { "..": 1 } };
      const dry = await importText(folder, { format: "json", input, args: ["--dry-run", "--force", "--json"] });
      expect(await stored(server(), folder)).to.deep.equal({ old: "was" });
      const real = await importText(folder, { format: "json", input, args: ["--force", "--json"] });
      expect([dry.code, real.code]).to.deep.equal([2, 2]);
      const summary = JSON.parse(real.stdout) as Record<string, unknown>;
      expect(JSON.parse(dry.stdout)).to.deep.equal({ ...summary, dryRun: true });
      expect(summary).to.include({ ok: false, created: 1, replaced: 1 });
      expect(JSON.stringify(summary["refused"]))
        .to.contain("the value is 5,000 bytes; the limit is 4,096")
        .and.contain("..");
      expect(await stored(server(), folder)).to.deep.equal({ old: "is", fresh: "fresh" });
    });

    it("two entries with the same path are rejected with both names before anything is stored", async () => {
      const folder = newFolder();
      const clash = { format: "json", input: { fresh: "1", a: { b: "2" }, "a/b": "3" } };
      mustRefuseWith(await importText(folder, clash), 7, `${folder}a/b: a → b and a/b`);
      const composed = { format: "json", input: { "\u00e9": "1", "e\u0301": "2" } };
      mustRefuseWith(await importText(folder, composed), 7, "several entries");
      expect(await stored(server(), folder)).to.deep.equal({});
    });

    describe("--on-duplicate", () => {
      const login = (id: string, created: string, username: string, password: string) => {
        return { name: "Mail", id, creationDate: created, login: { username, password } };
      };
      const [oldest, newest] = [login("b", "2024-01-01", "first", "p1"), login("a", "2025-01-01", "second", "p2")];
      const middle = login("c", "2024-06-01", "third", "p3");
      const bitwardenSource = (items: readonly object[], action?: string): Source => {
        return { format: "bitwarden", input: { items }, args: action === undefined ? [] : ["--on-duplicate", action] };
      };
      const both = {
        "Mail/username": "first",
        "Mail/password": "password: p1",
        "Mail-2/username": "second",
        "Mail-2/password": "password: p2",
      };

      it("suffix, the default, renames a whole item, by creation time, and is the same at every import", async () => {
        const folder = newFolder();
        const first = mustDo(await importText(folder, bitwardenSource([newest, oldest])));
        expect(first.stdout).to.contain(`item 1 (Mail): stored as ${folder}Mail-2\n`);
        expect(await stored(server(), folder)).to.deep.equal(both);
        const again = mustDo(await importText(folder, bitwardenSource([oldest, newest], "suffix")));
        expect(again.stdout).to.contain("0 created, 0 replaced, 4 unchanged, 0 skipped\n");
        const later = login("0", "2026-01-01", "fourth", "p4");
        const more = mustDo(await importText(folder, bitwardenSource([later, newest, oldest], "suffix")));
        expect(more.stdout).to.contain("2 created, 0 replaced, 4 unchanged, 0 skipped\n");
        expect(await stored(server(), folder)).to.include({ ...both, "Mail-3/username": "fourth" });
      });

      it("suffix uses no path that another entry has", async () => {
        const folder = newFolder();
        const taken = { ...middle, name: "Mail-2" };
        mustDo(await importText(folder, bitwardenSource([oldest, newest, taken], "suffix")));
        const found = await stored(server(), folder);
        expect(found).to.include({ "Mail/username": "first", "Mail-2/username": "third", "Mail-3/username": "second" });
      });

      it("suffix renames fields of the same name in one item, rows of KeePassXC and names of JSON", async () => {
        const folder = newFolder();
        const fields = [1, 2, 3].map((n) => ({ name: "code", value: `c${n}` }));
        mustDo(await importText(folder, bitwardenSource([{ ...oldest, fields }], "suffix")));
        const codes = { "Mail/fields/code": "c1", "Mail/fields/code-2": "c2", "Mail/fields/code-3": "c3" };
        expect(await stored(server(), folder)).to.include(codes);
        const rows = ['"Group","Title","Password","Created"', '"R","T","new","2025"', '"R","T","old","2024"'];
        const csv = { format: "keepassxc", input: rows.join("\n"), args: ["--on-duplicate", "suffix"] };
        mustDo(await importText(folder, csv));
        const json = { format: "json", input: { x: { y: "1" }, "x/y": "2" }, args: ["--on-duplicate", "suffix"] };
        mustDo(await importText(folder, json));
        const others = { "T/password": "password: old", "T-2/password": "password: new", "x/y": "1", "x/y-2": "2" };
        expect(await stored(server(), folder)).to.include(others);
      });

      it("suffix renames 50,000 items of one name, and one item of 50,000 fields of one name", async () => {
        const rows = Array.from({ length: 50_000 }, () => ",,p,,,Site,,0");
        const input = ["url,username,password,totp,extra,name,grouping,fav", ...rows].join("\n");
        const args = ["--on-duplicate", "suffix", "--dry-run"];
        const csv = mustDo(await importText(newFolder(), { format: "lastpass", input, args }));
        expect(csv.stdout).to.contain("50000 created");
        const fields = rows.map(() => ({ name: "code", value: "c" }));
        const item = { ...oldest, fields };
        const json = await importText(newFolder(), { format: "bitwarden", input: { items: [item] }, args });
        expect(json.stdout).to.contain("50002 created");
      });

      it("skip leaves out later items as a whole, and lists them", async () => {
        const folder = newFolder();
        const url = { ...newest, login: { ...newest.login, uris: [{ uri: "https://a" }] } };
        const { stdout } = mustDo(await importText(folder, bitwardenSource([url, oldest], "skip")));
        expect(stdout).to.contain("left out: item 1 (Mail), username, and all of its item: same path as item 2 (Mail)");
        const { "Mail/username": username, "Mail/password": password } = both;
        expect(await stored(server(), folder)).to.deep.equal({ "Mail/username": username, "Mail/password": password });
      });

      it("error names both items and both ways out", async () => {
        const refused = await importText(newFolder(), bitwardenSource([oldest, newest], "error"));
        mustRefuseWith(refused, 7, "item 1 (Mail)", "item 2 (Mail)", "--on-duplicate suffix or skip");
        mustRefuseWith(await importText(newFolder(), bitwardenSource([oldest], "rename")), 2, "error, suffix, skip");
      });
    });

    it("import -q prints only errors", async () => {
      const input = { a: "1", n: 1 };
      const { stdout, stderr } = await importText(newFolder(), { format: "json", input, args: ["-q"] });
      expect(stdout).to.equal("");
      expect(stderr).to.match(/^strongroom: not imported: n: .*\n$/);
    });
  });

  describe("import: many secrets, and interruptions", () => {
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`n-${i}`, `value ${i}`]));

    /** Four batches, since one has at most 1,000. */
    const inBatches = Object.fromEntries(Array.from({ length: 3_046 }, (_, i) => [`n-${i}`, "v"]));

    it("import reports what was stored when the storage fails half-way, and continues when run again", async () => {
      let isFull = false;
      const rename: FileOperations["rename"] = async (from, to) => {
        if (isFull && /journal-[3-9]$/.test(to)) throw Object.assign(new Error(), { code: "ENOSPC" });
        return systemFiles.rename(from, to);
      };
      const failing = await startLocalServer({ files: { ...systemFiles, rename } });
      await mustInit(failing);
      const source = { format: "json", input: inBatches, args: ["--json", "--timeout", "10m"] }; // for a busy machine
      isFull = true;
      const { code, stdout, stderr } = await importText("m", source, failing);
      expect(code, stdout).to.equal(1);
      isFull = false;
      const { created } = JSON.parse(stdout) as { created: number };
      expect(created).to.be.above(0).and.below(3_046);
      expect((await mustStatus(failing))["secretCount"]).to.be.within(created, 3_045);
      expect(stderr).to.contain(`stopped after ${created} of 3046 entries: run it again to continue`);
      mustDo(await importText("m", source, failing));
      expect((await mustStatus(failing))["secretCount"]).to.equal(3_046);
    });

    it("import exits 13 on SIGINT, and reports what was stored", async function () {
      needs(this, existsSync("/proc/self/status"), "/proc");
      let atBatch = async () => {};
      const rename: FileOperations["rename"] = async (from, to) => {
        if (/journal-\d+$/.test(to)) await atBatch(); // another file may be written before the command can take a signal
        return systemFiles.rename(from, to);
      };
      const slow = await startLocalServer({ files: { ...systemFiles, rename } });
      await mustInit(slow);
      const input = JSON.stringify(inBatches); // 2 batches are sent at a time
      const { child, finished } = start(slow, ["import", "--format", "json", "-"], { input });
      const waits = () =>
        Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]);
      atBatch = async () => {
        atBatch = async () => {}; // a second signal would end it at once
        const before = waits();
        child.kill("SIGINT");
        while (waits() === before) await sleep(5); // until it has taken the signal, and waits for this batch again
      };
      const { code, stdout, stderr } = await finished;
      expect(code, stderr).to.equal(13);
      const [, created] = /^(\d+) created/m.exec(stdout) ?? [];
      expect(Number(created)).to.be.above(0);
      expect(stderr).to.contain(`interrupted\nstrongroom: stopped after ${String(created)} of 3046 entries`);
      expect((await mustStatus(slow))["secretCount"]).to.equal(Number(created));
    });

    it("import stores all on a server that accepts only smaller batches", async () => {
      const small = await startLocalServer({ maxBatchBytes: 20_000 });
      await mustInit(small);
      const input = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`n-${i}`, "x".repeat(2000)]));
      const { stdout } = mustDo(await importText("m", { format: "json", input }, small));
      expect(stdout).to.equal("30 created, 0 replaced, 0 unchanged, 0 skipped\n");
      const again = mustDo(await importText("m", { format: "json", input }, small));
      expect(again.stdout).to.equal("0 created, 0 replaced, 30 unchanged, 0 skipped\n");
    });

    it("import shows its progress on a terminal", async function () {
      needs(this, spawnSync("script", ["--version"]).status === 0, "script(1)");
      const file = join(temporaryDirectory(), "many.json");
      writeFileSync(file, JSON.stringify(many));
      const command = `exec '${node}' '${mainFile}' import --format json --prefix shown '${file}'`;
      const env = environment({ STRONGROOM_HOME: server().home });
      const child = spawn("script", ["-qefc", command, "/dev/null"], {
        env,
        detached: true,
        stdio: ["ignore", "pipe", "inherit"],
      });
      later(() => void child.kill("SIGKILL"));
      const shown = await text(child.stdout);
      expect(shown).to.match(/\rimporting \[=* *\] \d+\/200/);
      expect(shown).to.contain("\r\u001b[K200 created, 0 replaced, 0 unchanged, 0 skipped\r\n"); // the bar is erased
    });

    it("import stores the rest when a stored secret is damaged, names it, and exits 12", async () => {
      const damaged = await startLocalServer({ cacheBytes: 0 });
      await mustInit(damaged);
      await mustPut(damaged, "d/a", "v");
      writeFileSync(join(damaged.vaultPath, "gen-1/secrets/d/a.sealed"), "no blob");
      const { code, stderr } = await importText("d", { format: "json", input: { a: "1", b: "2" } }, damaged);
      expect(code).to.equal(12);
      expect(stderr).to.contain("not imported").and.contain("d/a");
      expect((await mustGet(damaged, "d/b"))["value"]).to.equal("2");
    });

    it("import fails while the vault is locked, or without a server", async () => {
      const locked = await startLocalServer();
      await mustInit(locked);
      await mustLock(locked);
      const { code, stderr } = await importText("x", { format: "json", input: { a: "1" } }, locked);
      expect(code).to.equal(3);
      expect(stderr).to.contain("locked").and.contain("stopped after 0 of 1");
      const nowhere = await strongroom({ home: temporaryDirectory() }, ["import", "--format", "json", "-"], {
        input: "{}",
      });
      expect(nowhere.code).to.equal(10);
    });
  });

  describe("import --rewrite", () => {
    const fileWith = (text: string): string => {
      const file = join(temporaryDirectory(), ".env");
      writeFileSync(file, text);
      return file;
    };
    const run = (file: string, ...args: readonly string[]) =>
      strongroom(server(), ["import", "--format", "dotenv", "--rewrite", ...args, file]);

    it("--rewrite leaves references that run -e reads as the values, and the mode, comments and line ends", async () => {
      for (const ends of ["\n", "\r\n"]) {
        const file = fileWith(values.replaceAll("\n", ends));
        chmodSync(file, 0o640);
        const { stdout } = mustDo(await run(file, "--prefix", "my app"));
        expect(stdout).to.contain(
          `${file}: 5 values replaced by references\nrun with it: strongroom run -e ${file} -- `,
        );
        expect(readFileSync(file, "utf8")).to.equal(references.replaceAll("\n", ends));
        expect(statSync(file).mode & 0o777).to.equal(0o640);
        expect(readdirSync(join(file, ".."))).to.deep.equal([".env"]);
        const show = 'printf "%s|" "$API_KEY" "$PASSWORD" "$EMPTY" "$MULTI" "$PLAIN"';
        const ran = mustDo(await strongroom(server(), ["run", "-e", file, "--", "sh", "-c", show]));
        expect(ran.stdout).to.equal('abc123|with \n and \\"quotes\\" inside||first\nsecond # no comment|spaced value|');
        const again = mustDo(await run(file, "--prefix", "my app"));
        expect(again.stdout).to.contain("0 values replaced");
      }
    });

    it("--rewrite names the lines that keep their value, and never drops one that the vault does not have", async () => {
      await mustPut(server(), "kept/OTHER", "stored with another value");
      const text = "GOOD=1\nOTHER=from the file\nmy.name=2\nLD_PRELOAD=x.so\n";
      const file = fileWith(text);
      const { code, stdout, stderr } = await run(file, "--prefix", "kept");
      expect(code).to.equal(7); // one was skipped
      expect(readFileSync(file, "utf8")).to.equal(text.replace("GOOD=1", "GOOD=strongroom://kept/GOOD"));
      expect(stdout).to.contain("1 value replaced");
      expect(stderr.split("\n")).to.deep.equal([
        `strongroom: ${file}, line 2: OTHER keeps its value: the vault does not have this value`,
        `strongroom: ${file}, line 3: my.name keeps its value: my.name is not a valid variable name`,
        `strongroom: ${file}, line 4: LD_PRELOAD keeps its value: LD_PRELOAD changes how programs run: use  run --set LD_PRELOAD=path`,
        "",
      ]);
      expect(stderr).not.to.contain("from the file");
    });

    it("--rewrite changes nothing in a dry run, and follows a link", async () => {
      const file = fileWith("KEY=value\n");
      expect(mustDo(await run(file, "--prefix", "dry", "--dry-run")).stdout).to.contain("1 value would be replaced");
      expect(readFileSync(file, "utf8")).to.equal("KEY=value\n");
      const link = join(temporaryDirectory(), "link.env");
      symlinkSync(file, link);
      mustDo(await run(link, "--prefix", "linked"));
      expect(readFileSync(file, "utf8")).to.equal("KEY=strongroom://linked/KEY\n");
      expect((await mustGet(server(), "linked/KEY"))["value"]).to.equal("value");
    });

    it("--rewrite refuses standard input, other formats, and mixed line ends", async () => {
      mustRefuseWith(
        await strongroom(server(), ["import", "--rewrite", "-"], { input: "A=1\n" }),
        2,
        "needs a dotenv file",
      );
      const json = fileWith('{"a":"b"}');
      mustRefuseWith(
        await strongroom(server(), ["import", "--rewrite", "-q", json]),
        2,
        "--rewrite needs a dotenv file",
      );
      const mixed = fileWith("A=1\r\nB=2\n");
      const { code, stderr } = await run(mixed, "--prefix", "mixed");
      expect(code).to.equal(2);
      expect(stderr).to.contain("mixed line ends");
      expect(readFileSync(mixed, "utf8")).to.equal("A=1\r\nB=2\n");
    });
  });
});
