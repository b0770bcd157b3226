/** `strongroom version`. */
import type { Command } from "commander";
import { readCommit, readManifest } from "../../manifest.js";
import type { Io } from "../kit/io.js";
import { type OutputFlags, printJson, withResult } from "../kit/output.js";

export function define(command: Command, io: Io): void {
  withResult(command).action(({ json }: OutputFlags) => {
    const { version } = readManifest();
    if (json) printJson(io, { version, commit: readCommit() });
    else io.stdout.write(`${version}\n`);
  });
}
