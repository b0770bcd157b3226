/** `strongroom export`: never by accident, never over a file, and only what reads back unchanged. */
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { parse } from "dotenv";
import fc from "fast-check";
import { dotenvLine, parseDotenv } from "../../src/cli/import/formats/dotenv.js";
import { temporaryDirectory } from "../support/clean-up.js";
import { blobFile, damage } from "../support/damage.js";
import { shareTestServer, startTestServer } from "../support/server.js";
import { mustGet, mustInit, mustLock, mustPut } from "../support/test-client.js";
import { mustDo, mustRefuseWith, strongroom } from "./run-command.js";

const values: Readonly<Record<string, string>> = {
  plain: "s3cr3t/+=",
  empty: "",
  spaces: "  around  ",
  lines: "-----BEGIN X-----\nabc\n-----END X-----\n",
  quotes: `it's "so"`,
  hash: "a # b#c",
  windows: "a\r\nb",
  unicode: "zoë \u{1F511}\u2028",
  backslash: "C:\\dir\\n",
};
const details: Readonly<Record<string, object>> = {
  plain: { type: "api-key", description: "for the\nservice" },
  empty: { description: "" },
};

describe("strongroom export, through the real command", () => {
  const server = shareTestServer({}, async (shared) => {
    await mustInit(shared);
    for (const [name, value] of Object.entries(values))
      await mustPut(shared, `app/${name}`, { value, ...details[name] });
    await mustPut(shared, "clash/a/x", { value: "1" });
    await mustPut(shared, "clash/b/x", { value: "2" });
    await mustPut(shared, "hard/x", { value: "'\"`" });
  });

  const exportJson = ["export", "--format", "json", "--plaintext"];
  const exportDotenv = ["export", "--format", "dotenv", "--plaintext"];

  describe("export", () => {
    it("rejects an export without --plaintext, and says why", async () => {
      const file = join(temporaryDirectory(), "out");
      const args = ["export", "--format", "json", "-o", file];
      mustRefuseWith(await strongroom(server(), args), 2, "unencrypted", "--plaintext", "strongroom backup");
      mustRefuseWith(await strongroom(server(), ["export", "--plaintext"]), 2, "--format");
      mustRefuseWith(await strongroom(server(), ["export", "--plaintext", "--format", "xml"]), 2, "dotenv, json");
    });

    it("writes JSON in a stable format, which import reads back unchanged", async () => {
      const { stdout } = mustDo(await strongroom(server(), [...exportJson, "--prefix", "app/"]));
      const { format, version, secrets } = JSON.parse(stdout) as { format: string; version: number; secrets: object[] };
      expect({ format, version }).to.deep.equal({ format: "strongroom-export", version: 1 });
      const expected = Object.keys(values).map((name) => ({
        path: `app/${name}`,
        value: values[name],
        ...details[name],
      }));
      expect(secrets).to.have.deep.members(expected);

      const other = await startTestServer();
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

    it("writes dotenv that the dotenv package reads back unchanged", async () => {
      const { stdout } = mustDo(await strongroom(server(), [...exportDotenv, "--prefix", "app/"]));
      const names = Object.entries(values).map(([name, value]) => [name.toUpperCase(), value]);
      expect(parse(stdout)).to.deep.equal(Object.fromEntries(names));
    });

    it("rejects conflicting names, and values that dotenv cannot hold", async () => {
      mustRefuseWith(await strongroom(server(), [...exportDotenv, "--prefix", "clash/"]), 7, "clash/a/x", "clash/b/x");
      mustRefuseWith(await strongroom(server(), [...exportDotenv, "--prefix", "hard/"]), 2, "hard/x", "--format json");
    });

    it("creates a file with mode 0600, and overwrites one only with --force", async () => {
      const directory = temporaryDirectory();
      const file = join(directory, "out");
      const args = [...exportJson, "--prefix", "clash/", "-o", file];
      const { stdout } = mustDo(await strongroom(server(), args));
      expect(stdout).to.equal(`2 secrets written to ${file}, unencrypted\n`);
      expect(statSync(file).mode & 0o777).to.equal(0o600);
      const written = readFileSync(file, "utf8");
      writeFileSync(file, "mine");
      mustRefuseWith(await strongroom(server(), args), 7, file, "--force");
      expect(readFileSync(file, "utf8")).to.equal("mine");
      const forced = mustDo(await strongroom(server(), [...args, "--force", "--json"]));
      expect(JSON.parse(forced.stdout)).to.deep.equal({ ok: true, file, secrets: 2 });
      expect(readFileSync(file, "utf8")).to.equal(written);
      mustRefuseWith(await strongroom(server(), [...exportDotenv, "-o", `${file}2`]), 7, "clash/a/x");
      expect(readdirSync(directory)).to.deep.equal(["out"]);
      mustRefuseWith(await strongroom(server(), [...exportJson, "--json"]), 2, "-o");
    });

    it("rejects a partial export when secrets are damaged, and names them; run does, too", async () => {
      const damaged = await startTestServer({ cacheBytes: 0 });
      await mustInit(damaged);
      for (const path of ["a/whole", "a/broken"]) await mustPut(damaged, path, { value: "s3cr3t" });
      damage(blobFile(damaged, "a/broken"), Buffer.from("no blob"));
      mustRefuseWith(await strongroom(damaged, exportJson), 12, "a/broken", "doctor");
      mustRefuseWith(await strongroom(damaged, ["run", "--prefix", "a/", "--", "true"]), 12, "a/broken");
      mustDo(await strongroom(damaged, [...exportJson, "--prefix", "a/whole"]));
    });

    it("fails while the vault is locked", async () => {
      const locked = await startTestServer();
      await mustInit(locked);
      await mustLock(locked);
      mustRefuseWith(await strongroom(locked, exportJson), 3, "locked");
    });
  });

  describe("dotenv", () => {
    const text = fc.string({ unit: fc.constantFrom(..."ab '\"`\\#\n\r=$né\u2028\0".split("")), maxLength: 12 });

    it("reads the same in the dotenv package and in import after an export", () => {
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

    it("is parsed as the dotenv package parses it, or rejected", () => {
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
