/** `strongroom cp`. */
import type { Command } from "commander";
import { withClient } from "../session/connection.js";
import { type CopyFlags, copySecret, withCopying } from "../session/copy-secret.js";
import { report } from "../session/output.js";

export function define(command: Command): void {
  command.description("Copies a secret with its type and description.");
  withCopying(command).action(async (from: string, to: string, flags: CopyFlags) => {
    const copied = await withClient(flags, (client) => copySecret(client, [from, to], flags));
    if (flags.dryRun) {
      return report(flags, { dryRun: true, ...copied }, `${from} would be copied to ${copied.to}: nothing was done`);
    }
    report(flags, copied, `${copied.from} copied to ${copied.to}`);
  });
}
