/** The program's files against the list of their SHA-256 that the build makes. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, readlinkSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { readPlain } from "./home.js";
import type { Check } from "./report.js";
import { shown } from "./surroundings.js";

/** List in the form of `sha256sum`, so that  sha256sum -c  in the package's directory checks it too. */
const listFile = "dist/SHA256SUMS";

const folders = ["bin", "dist/program", "dist/workers"];
const isProgram = (name: string) => /\.cjs$/.test(name);

function programFiles(root: string): string[] {
  return folders
    .flatMap((folder) =>
      readdirSync(join(root, folder))
        .filter(isProgram)
        .map((name) => `${folder}/${name}`),
    )
    .sort();
}

export function writeList(root: string): void {
  writeFileSync(
    join(root, listFile),
    programFiles(root)
      .map((name) => `${sha256(join(root, name))}  ${name}\n`)
      .join(""),
  );
}

/** Returns the program's files that a process runs; none when its arguments do not name the program. */
export function filesOfProgram(pid: number): string[] {
  const root = packageDirectory(pid);
  return root === null ? [] : programFiles(root).map((name) => join(root, name));
}

/** Compares the files of the package at `root` with the list at `trusted`, which may be another copy of the package. */
export function checkProgram(root: string, trusted: string): { checks: Check[]; listHash: string } {
  const list = readPlain(join(trusted, listFile)).toString("utf8");
  const expected = new Map(
    list
      .trimEnd()
      .split("\n")
      .map((line) => [line.slice(66), line.slice(0, 64)]),
  );
  const present = programFiles(root);
  const changed = present.filter((name) => expected.has(name) && expected.get(name) !== sha256(join(root, name)));
  const unlisted = present.filter((name) => !expected.has(name));
  const missing = [...expected.keys()].filter((name) => !present.includes(name));
  const row = (what: string, names: readonly string[]): Check => {
    const found = names.length === 0 ? "none" : shown(names.join(", "));
    return { step: "program", state: null, what, expected: "none", found, holds: names.length === 0 };
  };
  const checks = [
    row("changed files", changed),
    row("files that are not in the list", unlisted),
    row("missing files", missing),
  ];
  return { checks, listHash: createHash("sha256").update(list).digest("hex") };
}

/** SHA-256 of the Node that a process runs; null when it may not be read. */
export function nodeHash(pid: number): string | null {
  try {
    return createHash("sha256")
      .update(readFileSync(`/proc/${pid}/exe`))
      .digest("hex");
  } catch {
    return null;
  }
}

function sha256(file: string): string {
  return createHash("sha256").update(readPlain(file)).digest("hex");
}

/** Returns the directory of the package whose command a process runs; null when its arguments name none. */
export function packageDirectory(pid: number): string | null {
  const script = readFileSync(`/proc/${pid}/cmdline`, "utf8")
    .split("\0")
    .slice(1)
    .map((word) => resolveArgument(pid, word))
    .find((path) => /\/(?:strongroom|entry)\.cjs$/.test(path));
  for (let directory = dirname(script ?? "/"); directory !== "/"; directory = dirname(directory)) {
    if (isPackage(directory)) return directory;
  }
  return null;
}

/** An argument as the path of a file, without links; empty when it is none. */
function resolveArgument(pid: number, word: string): string {
  try {
    return realpathSync(resolve(readlinkSync(`/proc/${pid}/cwd`), word));
  } catch {
    return "";
  }
}

function isPackage(directory: string): boolean {
  try {
    return (
      (JSON.parse(readPlain(join(directory, "package.json")).toString("utf8")) as { name?: string }).name ===
      "strongroom"
    );
  } catch {
    return false;
  }
}
