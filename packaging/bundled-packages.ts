/** The packages that the built program contains, read from the names that the bundler leaves above each module. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export type BundledPackage = {
  readonly name: string;
  readonly version: string;
  /** SPDX expression. */
  readonly licence: string;
  /** Null where the package has no such file. */
  readonly licenceText: string | null;
  readonly author: string | null;
  /** `sha512-…` of the tarball, from the lockfile. */
  readonly integrity: string;
};

type Manifest = {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly author?: string | { readonly name: string };
};

type Lockfile = { readonly packages: Readonly<Record<string, { readonly integrity?: string }>> };

const bundles = ["dist/program", "dist/workers"] as const;

/** The folders in node_modules whose modules a bundled file contains. */
export function foldersIn(file: string): readonly string[] {
  const modules = readFileSync(file, "utf8").matchAll(/^\/\/ (node_modules\/.+)$/gm);
  return [...new Set([...modules].map(([, path = ""]) => packageFolder(path)))].sort();
}

/** The innermost package of a module's path. */
function packageFolder(path: string): string {
  return /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? path;
}

/** All packages of the built program, by name and version. */
export function bundledPackages(): readonly BundledPackage[] {
  const files = bundles.flatMap((directory) =>
    readdirSync(directory)
      .filter((name) => name.endsWith(".cjs"))
      .map((name) => join(directory, name)),
  );
  const folders = [...new Set(files.flatMap(foldersIn))];
  const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as Lockfile;
  const found = folders.map((folder) => describe(folder, packages[folder]?.integrity ?? ""));
  const byId = new Map(found.map((one) => [`${one.name}@${one.version}`, one]));
  return [...byId].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
}

function describe(folder: string, integrity: string): BundledPackage {
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
  const { name, version, license, author } = manifest;
  if (license === undefined) throw new Error(`${name} names no licence: it must not become part of the program`);
  if (integrity === "") throw new Error(`${name} has no checksum in package-lock.json`);
  const licenceFile = readdirSync(folder).find((file) => /^licen[cs]e(?:\.(?:md|txt))?$/i.test(file));
  return {
    ...{ name, version, licence: license, integrity },
    licenceText: licenceFile === undefined ? null : readFileSync(join(folder, licenceFile), "utf8").trim(),
    author: typeof author === "string" ? author : (author?.name ?? null),
  };
}
