/** `strongroom help flags`: the flags of the connection, which every command that needs the server accepts. */
import type { Command } from "commander";
import { connectionOptions } from "../lib/args.js";

export function define(command: Command): void {
  command
    .description(
      "Describes the flags of the connection to the server. Every command that needs the server accepts them, before or " +
        "after its name. The variable in parentheses sets the same; behind it stands the default.",
    )
    .action(() => command.outputHelp());
  for (const option of connectionOptions()) command.addOption(option);
}
