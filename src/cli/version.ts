/** Owns `strongroom version`. */
import type { Command } from "commander";
import { version } from "./program.js";

export function define(command: Command): void {
  command.action(() => void process.stdout.write(`${version()}\n`));
}
