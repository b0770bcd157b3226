/** Owns `strongroom version`. */
import type { Command } from "commander";
import { readManifest } from "../manifest.js";

export function define(command: Command): void {
  command.action(() => void process.stdout.write(`${readManifest().version}\n`));
}
