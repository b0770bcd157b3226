/** `strongroom export`: never by accident, never over a file, and only what reads back unchanged. */
import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { parse } from "dotenv";
import fc from "fast-check";
import { dotenvLine, parseDotenv } from "../../src/cli/import/dotenv.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { shareLocalServer, startLocalServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustLock, mustPut } from "../../tools/rig/test-client.js";
import { blobFile, damage } from "../support/damage.js";
import { mustDo, mustRefuseWith, strongroom } from "./run-command.js";

/** Every format holds these. */
const values: Readonly<Record<string, string>> = {
  plain: "s3cr3t/+=",
  empty: "",
  spaces: "  around  ",
  lines: "-----BEGIN X-----\nabc\n-----END X-----\n",
  apostrophe: "it's",
  hash: "a # b#c",
  unicode: "zoë \u{1F511}\u2028",
  backslash: "C:\\dir\\n",
  command: "$(echo executed) `echo executed` $HOME",
  formula: "=1+1",
  program: "=ls",
  missing: "a:=no-such-program/b",
  pairs: "a=b==",
  plus: "+1",
  minus: "-n",
  at: "@SUM(A1)",
  tilde: "~/x:~root",
  tab: "\ta",
  dollar: "$",
  brace: `\${HOME:-x}`,
  comment: "#a",
  exclamation: "!!",
  glob: "* ?[a]",
  two: 'say "hi"\n=x',
};

/** Dotenv does not hold these. */
const hard: Readonly<Record<string, string>> = {
  quotes: `it's "so"`,
  execute: "it's `echo executed`",
  expand: "it's $(echo executed)",
  windows: "a\r\nb",
  ends: "C:\\",
};
const details: Readonly<Record<string, object>> = {
  plain: { type: "api-key", description: "for the\nservice", custom: { owner: "ci", note: "a\nb" } },
  empty: { description: "" },
};

describe("strongroom export, through the real command", () => {
  const server = shareLocalServer({}, async (shared) => {
    await mustInit(shared);
    for (const [name, value] of Object.entries(values))
      await mustPut(shared, `app/${name}`, { value, ...details[name] });
    await mustPut(shared, "clash/a/x", { value: "1" });
    await mustPut(shared, "clash/b/x", { value: "2" });
    for (const [name, value] of Object.entries(hard)) await mustPut(shared, `hard/${name}`, { value });
    await mustPut(shared, "nul/x", { value: "a\0b" });
    await mustPut(shared, "steer/NODE OPTIONS", { value: "--require=/tmp/evil.js" });
  });

  const exportJson = ["export", "--format", "json", "--plaintext"];
  const exportDotenv = ["export", "--format", "dotenv", "--plaintext"];
  const exportShell = ["export", "--format", "shell", "--plaintext"];

  /** Returns the values of these variables in a real shell that has sourced the text. */
  function sourced(shell: string, text: string, names: readonly string[]): Record<string, string> {
    const file = join(temporaryDirectory(), "sourced");
    writeFileSync(file, text);
    const show = names.map((name) => `printf '%s\\0' "$${name}"`).join("; ");
    const shown = execFileSync(shell, ["-c", `. "$0"; ${show}`, file], { encoding: "utf8", stdio: "pipe" });
    return Object.fromEntries(
      shown
        .split("\0")
        .slice(0, -1)
        .map((value, i) => [names[i], value]),
    );
  }

  describe("export", () => {
    it("an export without --plaintext is rejected with the reason", async () => {
      const file = join(temporaryDirectory(), "out");
      const args = ["export", "--format", "json", "-o", file];
      mustRefuseWith(await strongroom(server(), args), 2, "unencrypted", "--plaintext", "strongroom backup");
      mustRefuseWith(await strongroom(server(), ["export", "--plaintext"]), 2, "--format");
      mustRefuseWith(
        await strongroom(server(), ["export", "--plaintext", "--format", "xml"]),
        2,
        "dotenv, shell, json",
      );
    });

    it("JSON is exported in a stable format, which import reads back unchanged", async () => {
      const { stdout } = mustDo(await strongroom(server(), [...exportJson, "--prefix", "app/"]));
      const { format, version, secrets } = JSON.parse(stdout) as { format: string; version: number; secrets: object[] };
      expect({ format, version }).to.deep.equal({ format: "strongroom-export", version: 1 });
      const expected = Object.keys(values).map((name) => ({
        path: `app/${name}`,
        value: values[name],
        ...details[name],
      }));
      expect(secrets).to.have.deep.members(expected);

      const other = await startLocalServer();
      await mustInit(other);
      const { stdout: summary } = mustDo(
        await strongroom(other, ["import", "--format", "json", "-"], { input: stdout }),
      );
      expect(summary).to.equal(`${expected.length} created, 0 replaced, 0 unchanged, 0 skipped\n`);
      for (const { path, value, ...metadata } of expected) {
        const read = await mustGet(other, path);
        expect({ value: read["value"], metadata: read["metadata"] }).to.deep.equal({ value, metadata });
      }
      expect(mustDo(await strongroom(other, exportJson)).stdout).to.equal(stdout);
    });

    it("the dotenv package reads an export back unchanged", async () => {
      const { stdout } = mustDo(await strongroom(server(), [...exportDotenv, "--prefix", "app/"]));
      expect(parse(stdout)).to.deep.equal(values);
    });

    for (const shell of ["sh", "bash", "zsh"]) {
      it(`writes dotenv and shell text that ${shell} reads unchanged, and executes nothing of`, async function () {
        needs(this, spawnSync(shell, ["-c", "true"]).status === 0, shell);
        const dotenv = mustDo(await strongroom(server(), [...exportDotenv, "--prefix", "app/"])).stdout;
        expect(sourced(shell, dotenv, Object.keys(values))).to.deep.equal(values);
        expect(dotenv).not.to.match(/=`/);
        for (const [folder, rows] of [
          ["app/", values],
          ["hard/", hard],
        ] as const) {
          const { stdout } = mustDo(await strongroom(server(), [...exportShell, "--prefix", folder]));
          expect(sourced(shell, stdout, Object.keys(rows))).to.deep.equal(rows);
        }
      });
    }

    it("exports the variables of --format shell to programs", async () => {
      const { stdout } = mustDo(await strongroom(server(), [...exportShell, "--prefix", "hard"]));
      expect(execFileSync("sh", ["-c", `${stdout}printenv quotes`], { encoding: "utf8" })).to.equal(`it's "so"\n`);
    });

    it("rejects a secret whose name would steer programs, in dotenv and shell text", async () => {
      for (const format of [exportDotenv, exportShell]) {
        const steering = await strongroom(server(), [...format, "--prefix", "steer/"]);
        mustRefuseWith(steering, 2, "steer/NODE OPTIONS would set NODE_OPTIONS");
      }
    });

    it("rejects conflicting names, and values that dotenv cannot hold", async () => {
      mustRefuseWith(await strongroom(server(), [...exportDotenv, "--prefix", "clash/"]), 7, "clash/a/x", "clash/b/x");
      const refused = await strongroom(server(), [...exportDotenv, "--prefix", "hard/"]);
      mustRefuseWith(refused, 2, ...Object.keys(hard).map((name) => `hard/${name}`), "--format shell");
      mustRefuseWith(
        await strongroom(server(), [...exportShell, "--prefix", "nul/"]),
        2,
        "nul/x",
        "NUL",
        "--format json",
      );
    });

    it("creates a file with mode 0600, and overwrites one only with --overwrite", async () => {
      const directory = temporaryDirectory();
      const file = join(directory, "out");
      const args = [...exportJson, "--prefix", "clash/", "-o", file];
      const { stdout } = mustDo(await strongroom(server(), args));
      expect(stdout).to.equal(`2 secrets written to ${file}, unencrypted\n`);
      expect(statSync(file).mode & 0o777).to.equal(0o600);
      const written = readFileSync(file, "utf8");
      writeFileSync(file, "mine");
      mustRefuseWith(await strongroom(server(), args), 7, file, "--overwrite");
      expect(readFileSync(file, "utf8")).to.equal("mine");
      const forced = mustDo(await strongroom(server(), [...args, "--overwrite", "--json"]));
      expect(JSON.parse(forced.stdout)).to.deep.equal({ ok: true, file, secrets: 2 });
      expect(readFileSync(file, "utf8")).to.equal(written);
      mustRefuseWith(
        await strongroom(server(), [...exportDotenv, "--prefix", "clash/", "-o", `${file}2`]),
        7,
        "clash/a/x",
      );
      expect(readdirSync(directory)).to.deep.equal(["out"]);
      const one = await strongroom(server(), [...exportJson, "--prefix", "clash/a/", "-o", file, "--overwrite"]);
      expect(mustDo(one).stdout).to.equal(`1 secret written to ${file}, unencrypted\n`);
      mustRefuseWith(await strongroom(server(), [...exportJson, "--json"]), 2, "-o");
    });

    it("an export of damaged secrets is rejected with their names, as run does", async () => {
      const damaged = await startLocalServer({ cacheBytes: 0 });
      await mustInit(damaged);
      for (const path of ["b/whole", "a/broken"]) await mustPut(damaged, path, { value: "s3cr3t" });
      damage(blobFile(damaged, "a/broken"), Buffer.from("no blob"));
      mustRefuseWith(await strongroom(damaged, exportJson), 12, "a/broken", "doctor");
      mustRefuseWith(await strongroom(damaged, ["run", "--prefix", "a/", "--", "true"]), 12, "a/broken");
      mustDo(await strongroom(damaged, [...exportJson, "--prefix", "b"]));
    });

    it("an export fails while the vault is locked", async () => {
      const locked = await startLocalServer();
      await mustInit(locked);
      await mustLock(locked);
      mustRefuseWith(await strongroom(locked, exportJson), 3, "locked");
    });
  });

  describe("dotenv", () => {
    const text = fc.string({ unit: fc.constantFrom(..."ab '\"`\\#\n\r=$né\u2028\0".split("")), maxLength: 12 });

    it("the dotenv package, and import after an export, read the same from dotenv text", () => {
      fc.assert(
        fc.property(fc.array(text, { maxLength: 4 }), (values) => {
          const lines = values.map((value, i) => dotenvLine(`N${i}`, value));
          const held = Object.fromEntries(
            values.map((value, i) => [`N${i}`, value]).filter((_, i) => lines[i] !== null),
          );
          const file = lines.join("");
          expect(parse(file)).to.deep.equal(held);
          expect(Object.fromEntries(parseDotenv(file, "f").map(({ name, value }) => [name, value]))).to.deep.equal(
            held,
          );
        }),
        { numRuns: 3_000 },
      );
    });

    it("a shell reads dotenv text as dotenv does", () => {
      const names = fc.sample(text, 2_000).flatMap((value, i) => {
        const line = dotenvLine(`N${i}`, value);
        return line === null ? [] : [{ name: `N${i}`, value, line }];
      });
      const read = sourced(
        "sh",
        names.map(({ line }) => line).join(""),
        names.map(({ name }) => name),
      );
      expect(names.length).to.be.above(100);
      expect(read).to.deep.equal(Object.fromEntries(names.map(({ name, value }) => [name, value])));
    });

    it("dotenv text is parsed as the dotenv package does, or rejected", () => {
      const file = fc.string({ unit: fc.constantFrom(..."AB= '\"`\\#\nn".split("")), maxLength: 30 });
      let read = 0;
      fc.assert(
        fc.property(file, (text) => {
          const found = readOrNull(text);
          if (found === null) return;
          read++;
          expect(found).to.deep.equal(parse(text));
        }),
        { numRuns: 20_000, examples: [["A='\\'#'"], ["A=`\\`#`"], ["A='\\'\nB='n'"]] },
      );
      expect(read).to.be.above(100);
    });
  });

  function readOrNull(text: string): Record<string, string> | null {
    try {
      return Object.fromEntries(parseDotenv(text, "f").map(({ name, value }) => [name, value]));
    } catch {
      return null;
    }
  }
});
