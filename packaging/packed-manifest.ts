/**
 * `package.json` as the published package has it. The program is bundled: the packages that `dependencies` names are part of it,
 * and an installation must neither fetch them again nor need a registry.
 *
 * `npm pack` calls `strip` before it packs and `restore` after: `git checkout package.json` where it was interrupted in between.
 * `stagePackage` makes a directory that is packed without either.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

type Manifest = { readonly files: readonly string[] } & { readonly [member: string]: unknown };

/** Members that only a clone of the repository needs. */
const onlyForClones = ["dependencies", "devDependencies", "overrides", "scripts", "workspaces"];

const kept = "dist/package.json";

function packedManifest(): Manifest {
  const manifest = JSON.parse(readFileSync("package.json", "utf8")) as Manifest;
  const members = Object.entries(manifest).filter(([member]) => !onlyForClones.includes(member));
  return Object.fromEntries(members) as Manifest;
}

function write(file: string, manifest: Manifest): void {
  writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`);
}

/** Copies what the package contains, and its `package.json`, to a new directory, for `npm pack DIRECTORY`. */
export function stagePackage(directory: string): void {
  const manifest = packedManifest();
  for (const path of manifest.files.filter((pattern) => !pattern.startsWith("!"))) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    cpSync(path, join(directory, path), { recursive: true, verbatimSymlinks: true });
  }
  write(join(directory, "package.json"), manifest);
}

function strip(): void {
  const manifest = packedManifest();
  cpSync("package.json", kept);
  write("package.json", manifest);
}

/** Does nothing where `strip` was not called. */
function restore(): void {
  if (existsSync(kept)) renameSync(kept, "package.json");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv[2] === "strip") strip();
  else restore();
}
