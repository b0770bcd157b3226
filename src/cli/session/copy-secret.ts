/** Copy step that `strongroom mv` and `strongroom cp` share. */
import type { Command } from "commander";
import type { StrongroomClient } from "../../client/client.js";
import { type ConnectionFlags, withConnection } from "./connection.js";
import { CommandFailure } from "./exit-codes.js";
import { mustGet } from "./missing-secrets.js";
import { type OutputFlags, withDryRun, withOutput } from "./output.js";
import { canonical, creating, lookAt, refuseOverwriting, targetPath } from "./secret-arguments.js";

export type CopyFlags = OutputFlags & ConnectionFlags & { readonly force?: true; readonly dryRun?: true };

export function withCopying(command: Command): Command {
  const changed = command
    .argument("<from>", "the secret's path")
    .argument("<to>", "the new path; with a / at its end, a folder in which the secret keeps its name")
    .option("-f, --force", "replace an existing secret");
  return withOutput(withConnection(withDryRun(changed)));
}

export type Copied = { readonly from: string; readonly to: string; readonly replaced: boolean };

/** With `dryRun`, does everything but the write. @throws CommandFailure usage, conflict; StrongroomError */
export async function copySecret(
  client: StrongroomClient,
  [from, to]: readonly [string, string],
  { force, dryRun }: CopyFlags,
): Promise<Copied> {
  const names = { from: canonical(from), to: targetPath(from, to) };
  if (names.from === names.to)
    throw new CommandFailure("usage", "source and target are the same path: nothing was done");
  const replaced = (await lookAt(client, names.to)) !== null;
  const remedy = "--force replaces it";
  if (replaced && !force) refuseOverwriting(names.to, remedy);
  const secret = await mustGet(client, names.from);
  const options = { ...secret.metadata, replaceMetadata: true, ifAbsent: !force };
  if (!dryRun) await creating(names.to, remedy, () => client.put(names.to, secret.reveal(), options));
  return { ...names, replaced };
}
