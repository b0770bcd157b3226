/** `strongroom inject`: what it replaces, what it keeps, and when it writes nothing. */
import { execFileSync } from "node:child_process";
import { existsSync, lstatSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { shareLocalServer, startLocalServer } from "../../tools/rig/server.js";
import { mustInit, mustLock, mustPut } from "../../tools/rig/test-client.js";
import { mustDo, mustRefuseWith, strongroom } from "./run-command.js";

describe("strongroom inject, through the real command", () => {
  const server = shareLocalServer({}, async (shared) => {
    await mustInit(shared);
    await mustPut(shared, "app/user", { value: "zoë" });
    await mustPut(shared, "app/key", { value: '"quoted"\n{{ strongroom://app/user }}' });
    await mustPut(shared, "odd/a b%{}", { value: "odd" });
  });

  describe("inject", () => {
    it("fills standard input to standard output, and keeps every other byte", async () => {
      const before = Buffer.from([0xff, 0x00, 0x0d, 0x0a]);
      const braces = "{{ .Values.a }} {{ strong }} {{}} { strongroom://app/user }";
      const template = `${braces}[{{strongroom://app/user}}][{{ \tstrongroom://app/user }}][{{ strongroom://app%2Fuser }}]`;
      const input = Buffer.concat([before, Buffer.from(template), before]);
      const { bytes } = mustDo(await strongroom(server(), ["inject"], { input }));
      const filled = Buffer.from(`${braces}[zoë][zoë][zoë]`);
      expect(bytes.equals(Buffer.concat([before, filled, before]))).to.equal(true);
    });

    it("takes any number of blanks behind a path, and a path that ends in a letter of several bytes", async () => {
      await mustPut(server(), "app/voilà", "là");
      const blanks = " \t".repeat(500_000);
      const input = `{{ strongroom://app/user${blanks}}}{{ strongroom://app/voilà }}`;
      expect(mustDo(await strongroom(server(), ["inject"], { input })).stdout).to.equal("zoëlà");
      const open = await strongroom(server(), ["inject"], { input: `{{ strongroom://app/user${blanks}` });
      mustRefuseWith(open, 2, "invalid reference");
    });

    const nearMisses = [
      "{{- strongroom://app/user -}}",
      '{{ "strongroom://app/user" }}',
      "{{\nstrongroom://app/user }}",
      "{{ STRONGROOM://app/user }}",
      "{{ 'strongroom://app/user' | quote }}",
      "{{~ strongroom://app/user ~}}",
      "{{ (strongroom://app/user) }}",
      "{{ strongroom://app/user\n}}",
    ];
    for (const near of nearMisses) {
      it(`rejects the near miss ${JSON.stringify(near)} with its line`, async () => {
        mustRefuseWith(
          await strongroom(server(), ["inject"], { input: `a\n${near}\n` }),
          2,
          "line 2",
          "invalid reference",
        );
      });
    }

    it("inject rejects references in UTF-16 text", async () => {
      const little = Buffer.from("x: {{ strongroom://app/user }}", "utf16le");
      for (const input of [little, Buffer.from(little).swap16()]) {
        mustRefuseWith(await strongroom(server(), ["inject"], { input }), 2, "UTF-16");
      }
    });

    it("rejects an output file that is a symbolic link, and keeps the link", async () => {
      const directory = temporaryDirectory();
      const there = join(directory, "there");
      writeFileSync(there, "kept");
      const chain = join(directory, "link-to-there");
      symlinkSync(there, chain);
      const loop = join(directory, "link-loop");
      for (const target of ["/proc/self/fd/1", there, chain, loop, directory, join(directory, "missing")]) {
        const link = join(directory, `link-${target.replaceAll("/", "-")}`);
        symlinkSync(target, link);
        for (const flags of [[], ["--overwrite"]]) {
          const refused = await strongroom(server(), ["inject", "-o", link, ...flags], { input: "x" });
          mustRefuseWith(refused, 2, "is a symbolic link");
          expect(lstatSync(link).isSymbolicLink()).to.equal(true);
          expect(existsSync(join(directory, "missing"))).to.equal(false);
          expect(readFileSync(there, "utf8")).to.equal("kept");
        }
      }
    });

    it("inserts values unchanged, and does not replace references in them", async () => {
      const input = "{{ strongroom://app/key }} {{ strongroom://odd/a b%25%7B%7D }}";
      const { stdout } = mustDo(await strongroom(server(), ["inject", "-i", "-"], { input }));
      expect(stdout).to.equal('"quoted"\n{{ strongroom://app/user }} odd');
    });

    it("creates a file with mode 0600, and overwrites one only with --overwrite", async () => {
      const directory = temporaryDirectory();
      const [template, file] = [join(directory, "template"), join(directory, "out")];
      writeFileSync(template, "user={{ strongroom://app/user }}\n");
      const args = ["inject", "-i", template, "-o", file];
      expect(mustDo(await strongroom(server(), args)).stdout).to.equal(`1 secret written to ${file}\n`);
      expect(readFileSync(file, "utf8")).to.equal("user=zoë\n");
      expect(statSync(file).mode & 0o777).to.equal(0o600);
      writeFileSync(file, "mine", { mode: 0o644 });
      mustRefuseWith(await strongroom(server(), args), 7, file, "--overwrite");
      expect(readFileSync(file, "utf8")).to.equal("mine");
      const { stdout } = mustDo(await strongroom(server(), [...args, "--overwrite", "--json"]));
      expect(JSON.parse(stdout)).to.deep.equal({ ok: true, dryRun: false, file, secrets: 1 });
      expect(readFileSync(file, "utf8")).to.equal("user=zoë\n");
      expect(readdirSync(directory).sort()).to.deep.equal(["out", "template"]);
    });

    it("inject lists all missing secrets, and writes nothing", async () => {
      const directory = temporaryDirectory();
      const input = "{{ strongroom://app/user }}{{ strongroom://no/b }}{{ strongroom://no/a }}";
      mustRefuseWith(await strongroom(server(), ["inject", "-o", join(directory, "out")], { input }), 4, "no/a, no/b");
      mustRefuseWith(await strongroom(server(), ["inject"], { input }), 4, "no/a, no/b");
      expect(readdirSync(directory)).to.deep.equal([]);
    });

    it("checks with --dry-run that all secrets exist, and writes nothing", async () => {
      const file = join(temporaryDirectory(), "out");
      const args = ["inject", "--dry-run", "-o", file];
      const { stdout } = mustDo(await strongroom(server(), args, { input: "{{ strongroom://app/user }}" }));
      expect(stdout).to.equal("1 secret found; a dry run: nothing was written\n");
      expect(existsSync(file)).to.equal(false);
      mustRefuseWith(await strongroom(server(), args, { input: "{{ strongroom://no/a }}" }), 4, "no/a");
    });

    it("rejects the same output files with --dry-run as without", async () => {
      const file = join(temporaryDirectory(), "out");
      writeFileSync(file, "there");
      const inject = (...args: string[]) => strongroom(server(), ["inject", "--dry-run", ...args]);
      mustRefuseWith(await inject("-o", file), 7, "--overwrite");
      mustRefuseWith(await inject("-o", join(file, "out")), 1, "cannot be written (ENOTDIR)");
      mustRefuseWith(await inject("-o", "/nowhere/out"), 1, "cannot be written (ENOENT)");
      const pipe = join(temporaryDirectory(), "pipe");
      execFileSync("mkfifo", [pipe]);
      for (const odd of [pipe, temporaryDirectory()]) {
        mustRefuseWith(await inject("-o", odd), 2, "not a regular file: choose another");
        mustRefuseWith(await inject("-o", odd, "--overwrite"), 2, "not a regular file: choose another");
      }
      mustRefuseWith(await inject("-o", "-"), 2, "omit -o");
      mustDo(await inject("-o", file, "--overwrite"));
    });

    for (const [template, word] of [
      ["a\n{{ strongroom://app/user", "line 2"],
      ["{{ strongroom://app\n/user }}", "line 1"],
      ["{{ strongroom:app/user }}", "{{ strongroom://path }}"],
      ["{{ strongroom://app//user }}", "empty segment"],
      ["{{ strongroom:// }}", "the path is empty"],
      ["{{ strongroom://app/%zz }}", "percent-encoded"],
    ] as const) {
      it(`rejects ${JSON.stringify(template)}`, async () => {
        mustRefuseWith(await strongroom(server(), ["inject"], { input: template }), 2, word);
      });
    }

    it("inject fails on unreadable input, unwritable output and a locked vault", async () => {
      mustRefuseWith(await strongroom(server(), ["inject", "-i", "/no/such"]), 2, "/no/such", "cannot be read");
      mustRefuseWith(
        await strongroom(server(), ["inject", "-o", "/no/such/file"], { input: "x" }),
        1,
        "cannot be written",
      );
      mustRefuseWith(await strongroom(server(), ["inject", "--json"], { input: "x" }), 2, "-o");
      const locked = await startLocalServer();
      await mustInit(locked);
      await mustLock(locked);
      mustRefuseWith(await strongroom(locked, ["inject"], { input: "{{ strongroom://a }}" }), 3, "locked");
    });
  });
});
