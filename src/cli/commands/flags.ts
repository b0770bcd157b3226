/** `strongroom help flags`: a page of the help about the connection's flags, which every command that needs the server accepts. */
import { type Command, Help } from "commander";
import { connectionOptions } from "../kit/args/args.js";

export function define(command: Command): void {
  command
    .description(
      "Describes the flags of the connection to the server. Every command that needs the server accepts them, before or " +
        "after its name. Parentheses show the environment variable and the default.",
    )
    .configureHelp({
      ...command.configureHelp(),
      formatHelp: withoutUsage,
      visibleOptions: ({ options }) => [...options],
    })
    .action(() => command.outputHelp());
  for (const option of connectionOptions()) command.addOption(option);
}

/** It is no command: it has no usage. */
function withoutUsage(command: Command, helper: Help): string {
  return Help.prototype.formatHelp.call(helper, command, helper).replace(/^usage:.*\n\n/, "");
}
