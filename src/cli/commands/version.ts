/** `strongroom version`. */
import type { Command } from "commander";
import { readManifest } from "../../manifest.js";
import { type OutputFlags, printJson, withResult } from "../kit/output.js";

export function define(command: Command): void {
  withResult(command).action(({ json }: OutputFlags) => {
    const { version } = readManifest();
    if (json) printJson({ version });
    else process.stdout.write(`${version}\n`);
  });
}
