/** `strongroom rm`: asks first, and reports a deletion that was only partly done. */
import type { Command } from "commander";
import { type StrongroomClient, StrongroomError } from "../../client/client.js";
import { mustConfirm } from "../prompt/confirm.js";
import { type ConnectionFlags, failureOf, withClient, withConnection } from "../session/connection.js";
import { CommandFailure } from "../session/exit-codes.js";
import { explainMissing } from "../session/missing-secrets.js";
import { type OutputFlags, printable, report, withDryRun, withOutput } from "../session/output.js";
import { canonical, lookAt } from "../session/secret-arguments.js";

type Flags = OutputFlags &
  ConnectionFlags & { readonly force?: true; readonly dryRun?: true; readonly nonInteractive?: true };

export function define(command: Command): void {
  command
    .description("Deletes secrets permanently. If one of them does not exist, none is deleted.")
    .argument("<path...>", "the secrets' paths")
    .option("-f, --force", "do not ask")
    .option("--non-interactive", "never prompt: fail without --force");
  withOutput(withConnection(withDryRun(command))).action(rm);
}

async function rm(given: readonly string[], flags: Flags): Promise<void> {
  const paths = [...new Set(given.map(canonical))];
  await withClient(flags, (client) => mustBeThere(client, paths));
  if (flags.dryRun) {
    return report(flags, { dryRun: true, deleted: paths }, `would be deleted: ${paths.join(", ")}: nothing was done`);
  }
  if (!flags.force) await mustConfirm(`Delete ${paths.map(printable).join(", ")}?`, flags.nonInteractive);
  await withClient(flags, (client) => deleteAll(client, paths));
  report(flags, { deleted: paths }, `deleted: ${paths.join(", ")}`);
}

async function mustBeThere(client: StrongroomClient, paths: readonly string[]): Promise<void> {
  const missing: string[] = [];
  for (const path of paths) if ((await lookAt(client, path)) === null) missing.push(path);
  if (missing.length === 0) return;
  const [first = "", ...others] = missing;
  if (others.length === 0)
    throw new CommandFailure("notFound", `nothing was done: ${await explainMissing(client, first)}`);
  const names = missing.map(printable).join(", ");
  throw new CommandFailure("notFound", `no secret at ${names}: nothing was done; strongroom ls  lists all secrets`);
}

async function deleteAll(client: StrongroomClient, paths: readonly string[]): Promise<void> {
  for (const [index, path] of paths.entries()) {
    try {
      await client.delete(path);
    } catch (error) {
      const isFailure = error instanceof StrongroomError || error instanceof CommandFailure;
      if (!isFailure || index === 0) throw error;
      const { exit, message } = await failureOf(error, client);
      const gone = paths.slice(0, index).map(printable).join(", ");
      throw new CommandFailure(exit, `${message}; deleted before that: ${gone}`);
    }
  }
}
