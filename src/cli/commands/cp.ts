/** `strongroom cp`. */
import type { Command } from "commander";
import { defineTransfer } from "./mv.js";

export function define(command: Command): void {
  command.description("Copies a secret or a folder, with types and descriptions.");
  defineTransfer(command, "copy");
}
