/** `strongroom cp`. */
import type { Command } from "commander";
import type { Io } from "../kit/io.js";
import { defineTransfer } from "./mv.js";

export function define(command: Command, io: Io): void {
  command.description("Copies a secret or a folder, with types and descriptions.");
  defineTransfer(io, command, "copy");
}
