/**
 * Removal of each extra from a copy of the source: its folder, its tests, its row of the command table, its page with the
 * links to it, and its program in bin. What is left builds, passes the rules of its architecture, and runs. Long form: each
 * extra takes a build.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";

const isLong = process.env["STRONGROOM_REMOVE_EXTRAS"] !== undefined;
const leftBehind = new Set(["node_modules", "dist", ".git"]);
const shells = ["bash", "zsh", "fish"];

describe("an extra", () => {
  for (const extra of readdirSync("src/extras")) {
    it(`${extra} has a page, and a heading of three lines that says what it is`, () => {
      const [heading = ""] = /^\/\*\*\n(?: \* .+\n){3} \*\/\n/.exec(readFileSync(entryFile(extra), "utf8")) ?? [];
      expect(heading).to.contain(`\`strongroom ${extra}\`: `);
      expect(readFileSync(`docs/extras/${extra}.md`, "utf8")).to.match(/^# .+\n/);
    });
  }
});

describe("removal of an extra", () => {
  before(function () {
    needs(this, isLong, "STRONGROOM_REMOVE_EXTRAS");
  });

  for (const extra of readdirSync("src/extras")) {
    it(`the program builds, passes its rules and runs without ${extra}`, () => {
      const copy = temporaryDirectory();
      for (const name of readdirSync(".").filter((entry) => !leftBehind.has(entry))) {
        cpSync(name, join(copy, name), { recursive: true });
      }
      symlinkSync(resolve("node_modules"), join(copy, "node_modules"));
      const names = removeExtra(copy, extra);
      must(copy, "npm", "run", "--silent", "build");
      const hooks = ["--no-config", "--timeout", "0", "--require", "dist/test/support/hooks.js"];
      const mocha = [process.execPath, "node_modules/mocha/bin/mocha.js", ...hooks] as const;
      must(copy, ...mocha, "dist/test/architecture.test.js");
      must(copy, ...mocha, "dist/test/docs/documents.test.js", "--grep", "links");
      const program = [process.execPath, "dist/program/entry.cjs"] as const;
      const help = must(copy, ...program, "help");
      expect(help).to.contain("  get ").and.to.contain("  run ");
      const scripts = shells.map((shell) => must(copy, ...program, "completion", shell)).join("");
      for (const name of names) {
        expect(help).not.to.match(new RegExp(`^ {2}${name} `, "m"));
        expect(scripts).not.to.match(new RegExp(`(?<![\\w-])${name}[|)]|(?:-a '|_in )${name}'|strongroom ${name}\\b`));
      }
    });
  }
});

function entryFile(extra: string): string {
  return `src/extras/${extra}/${extra}.ts`;
}

/** Returns the names of the extra's commands. */
function removeExtra(copy: string, extra: string): readonly string[] {
  for (const folder of ["src", "test"]) rmSync(join(copy, folder, "extras", extra), { recursive: true, force: true });
  rmSync(join(copy, `docs/extras/${extra}.md`));
  removeLines(join(copy, "docs/extras/README.md"), `(${extra}.md)`);
  removeLinks(join(copy, "docs"), `extras/${extra}.md`);
  const removed = removeLines(join(copy, "src/cli/command-table.ts"), `"../extras/${extra}/`);
  const names = removed.map((row) => /name: "([^"]+)"/.exec(row)?.[1] ?? "");
  for (const name of names) removeProgram(copy, `${name}-strongroom`);
  return names;
}

/** Replaces the links to a page by their texts. */
function removeLinks(directory: string, page: string): void {
  for (const name of readdirSync(directory, { recursive: true, encoding: "utf8" }).filter((each) =>
    /\.md$/.test(each),
  )) {
    const file = join(directory, name);
    const link = new RegExp(`\\[([^\\]]*)\\]\\((?:\\.\\./)*${page.replace(".", "\\.")}(?:#[^)]*)?\\)`, "g");
    writeFileSync(file, readFileSync(file, "utf8").replace(link, "$1"));
  }
}

/** Removes and returns the lines that contain a text, of which there must be some. */
function removeLines(file: string, text: string): readonly string[] {
  const lines = readFileSync(file, "utf8").split("\n");
  const removed = lines.filter((line) => line.includes(text));
  expect(removed, file).not.to.have.lengthOf(0);
  writeFileSync(file, lines.filter((line) => !removed.includes(line)).join("\n"));
  return removed;
}

/** Removes a program from bin and from package.json, where it is one. */
function removeProgram(copy: string, name: string): void {
  const file = join(copy, `bin/${name}.cjs`);
  if (!existsSync(file)) return;
  rmSync(file);
  const path = join(copy, "package.json");
  const manifest = JSON.parse(readFileSync(path, "utf8")) as { bin: Record<string, string> };
  expect(manifest.bin).to.have.property(name);
  delete manifest.bin[name];
  writeFileSync(path, JSON.stringify(manifest, null, 2));
}

function must(cwd: string, program: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: "utf8" });
  expect(status, `${program} ${args.join(" ")}:\n${stdout}${stderr}`).to.equal(0);
  return stdout;
}
