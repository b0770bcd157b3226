/** `strongroom mv`. */
import type { Command } from "commander";
import { defineTransfer } from "../secrets/transfer.js";

export function define(command: Command): void {
  command.description(
    "Moves or renames a secret or a folder. Secrets keep their types, descriptions, times and versions.",
  );
  defineTransfer(command, "move");
}
