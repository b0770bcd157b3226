/** Owns what `strongroom mv` and `strongroom cp` have in common: a secret goes to another path with all that it has. */
import type { Command } from "commander";
import type { StrongroomClient } from "../../client/client.js";
import { type ConnectionFlags, withConnection } from "./connection.js";
import { CommandFailure } from "./exit-codes.js";
import { type OutputFlags, withDryRun, withOutput } from "./output.js";
import { canonical, lookAt, refuseOverwriting, targetPath } from "./secret-arguments.js";

export type CopyFlags = OutputFlags & ConnectionFlags & { readonly force?: true; readonly dryRun?: true };

export function withCopying(command: Command): Command {
  const changed = command
    .argument("<from>", "the secret's path")
    .argument("<to>", "the new path; one that ends in / is a folder, in which the secret keeps its name")
    .option("-f, --force", "replace a secret that is there");
  return withOutput(withConnection(withDryRun(changed)));
}

export type Copied = { readonly from: string; readonly to: string; readonly replaced: boolean };

/** With `dryRun`, all but the writing. @throws CommandFailure usage, conflict; StrongroomError */
export async function copySecret(
  client: StrongroomClient,
  [from, to]: readonly [string, string],
  { force, dryRun }: CopyFlags,
): Promise<Copied> {
  const names = { from: canonical(from), to: targetPath(from, to) };
  if (names.from === names.to) throw new CommandFailure("usage", "both paths are the same: nothing was done");
  const replaced = (await lookAt(client, names.to)) !== null;
  if (replaced && !force) refuseOverwriting(names.to, "--force replaces it");
  const secret = await client.get(names.from);
  if (!dryRun) await client.put(names.to, secret.reveal(), secret.metadata);
  return { ...names, replaced };
}
