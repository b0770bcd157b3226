/** Files at the root of the package. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { StartError, systemCode } from "./errors.js";

/** Description of the program in package.json. */
type Manifest = { readonly version: string; readonly description: string; readonly license: string };

/** Returns the commit from which the program was built; null where the source was no clone. */
export function readCommit(): string | null {
  try {
    return readFileSync(packageFile("dist/program/commit"), "utf8").trim() || null;
  } catch {
    return null;
  }
}

/** @throws StartError */
export function readManifest(): Manifest {
  const { version, description, license } = manifestIn(readPackageFile("package.json"));
  const all = { version, description, license };
  if (Object.values(all).every((text) => typeof text === "string")) return all as Manifest;
  throw damaged("package.json");
}

function manifestIn(text: string): Partial<Record<keyof Manifest, unknown>> {
  try {
    return { ...(JSON.parse(text) as object) };
  } catch {
    throw damaged("package.json");
  }
}

/** @throws StartError */
export function readPackageFile(name: string): string {
  try {
    return readFileSync(packageFile(name), "utf8");
  } catch (error) {
    if (systemCode(error) === "ENOENT") throw damaged(name);
    throw error;
  }
}

function packageFile(name: string): URL {
  return new URL(`../../${name}`, import.meta.url);
}

export function damaged(name: string): StartError {
  return new StartError(`${fileURLToPath(packageFile(name))} is missing or damaged: install strongroom again`);
}
