/**
 * Removal of each extra from a copy of the source: its folder and its row of the command table. What is left builds, passes
 * the rules of its architecture, and runs. Long form: each extra takes a build.
 */
import { spawnSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";

const isLong = process.env["STRONGROOM_REMOVE_EXTRAS"] !== undefined;
const leftBehind = new Set(["node_modules", "dist", ".git"]);

describe("the program without an extra", () => {
  before(function () {
    needs(this, isLong, "STRONGROOM_REMOVE_EXTRAS");
  });

  for (const extra of readdirSync("src/extras")) {
    it(`builds, passes its rules and runs without ${extra}`, () => {
      const copy = temporaryDirectory();
      for (const name of readdirSync(".").filter((entry) => !leftBehind.has(entry))) {
        cpSync(name, join(copy, name), { recursive: true });
      }
      symlinkSync(resolve("node_modules"), join(copy, "node_modules"));
      const names = removeExtra(copy, extra);
      must(copy, "npm", "run", "--silent", "build");
      const rules = ["dist/test/architecture.test.js", "--no-config", "--require", "dist/test/support/hooks.js"];
      must(copy, process.execPath, "node_modules/mocha/bin/mocha.js", ...rules);
      const help = must(copy, process.execPath, "dist/program/entry.cjs", "help");
      expect(help).to.contain("  get ").and.to.contain("  run ");
      for (const name of names) expect(help).not.to.match(new RegExp(`^ {2}${name} `, "m"));
    });
  }
});

/** Removes the folder, its tests and its rows; returns the names of its commands. */
function removeExtra(copy: string, extra: string): readonly string[] {
  for (const folder of ["src", "test"]) rmSync(join(copy, folder, "extras", extra), { recursive: true, force: true });
  const table = join(copy, "src/cli/command-table.ts");
  const rows = readFileSync(table, "utf8").split(/(?<=\},\n)(?= {2}\{)/);
  const removed = rows.filter((row) => row.includes(`"../extras/${extra}/`));
  expect(removed).not.to.have.lengthOf(0);
  writeFileSync(table, rows.filter((row) => !removed.includes(row)).join(""));
  return removed.map((row) => /name: "([^"]+)"/.exec(row)?.[1] ?? "");
}

function must(cwd: string, program: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: "utf8" });
  expect(status, `${program} ${args.join(" ")}:\n${stdout}${stderr}`).to.equal(0);
  return stdout;
}
