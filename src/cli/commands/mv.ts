/** `strongroom mv`: copies first, then deletes, so that the secret exists at every moment. */
import type { Command } from "commander";
import { type StrongroomClient, StrongroomError } from "../../client/client.js";
import { failureOf, withClient } from "../session/connection.js";
import { type Copied, type CopyFlags, copySecret, withCopying } from "../session/copy-secret.js";
import { CommandFailure } from "../session/exit-codes.js";
import { report } from "../session/output.js";

export function define(command: Command): void {
  command.description("Moves or renames a secret; it keeps its type and description.");
  withCopying(command).action(move);
}

async function move(from: string, to: string, flags: CopyFlags): Promise<void> {
  const moved = await withClient(flags, async (client) => {
    const copied = await copySecret(client, [from, to], flags);
    if (!flags.dryRun) await deleteOld(client, copied);
    return copied;
  });
  if (flags.dryRun) {
    return report(flags, { dryRun: true, ...moved }, `${from} would be moved to ${moved.to}: nothing was done`);
  }
  report(flags, moved, `${moved.from} moved to ${moved.to}`);
}

async function deleteOld(client: StrongroomClient, { from, to }: Copied): Promise<void> {
  try {
    await client.delete(from);
  } catch (error) {
    if (!(error instanceof StrongroomError || error instanceof CommandFailure)) throw error;
    const { exit, message } = await failureOf(error, client);
    const stands = `${to} has the secret, and ${from} may have it too: delete it with  strongroom rm`;
    throw new CommandFailure(exit, `the old path could not be deleted: ${message}; ${stands}`);
  }
}
