/** Files at the root of the package. */
import { readFileSync } from "node:fs";

/** What package.json says about the program. */
export type Manifest = { readonly version: string; readonly description: string; readonly license: string };

export function readManifest(): Manifest {
  return JSON.parse(readPackageFile("package.json")) as Manifest;
}

export function readPackageFile(name: string): string {
  return readFileSync(new URL(`../../${name}`, import.meta.url), "utf8");
}
