/** What package.json says about the program. */
import { readFileSync } from "node:fs";

export type Manifest = { readonly version: string; readonly description: string; readonly license: string };

export function readManifest(): Manifest {
  return JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as Manifest;
}
