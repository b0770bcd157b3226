/** `strongroom undo`: an earlier version of a secret, stored again as its newest; or a deleted secret, back from the trash. */
import type { Command } from "commander";
import { type SecretHistory, type Stored, type StrongroomClient, StrongroomError } from "../../client/client.js";
import { mustBePath } from "../kit/args/paths.js";
import { isConflict } from "../kit/connection/changes.js";
import { isInTrash, mustGetHistory, noSuchVersion, versionOption } from "../kit/connection/secrets.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import { shellWord } from "../kit/hints.js";
import type { Io } from "../kit/io.js";
import { type OutputFlags, printable, report, withDryRun, withOutput } from "../kit/output.js";

type Flags = OutputFlags & ConnectionFlags & { readonly to?: number; readonly dryRun?: true };

const details = `
What was the newest version stays in the history: a second undo brings it back.
strongroom trash ls  lists the deleted secrets.`;

export function define(command: Command, io: Io): void {
  command
    .description(
      "Stores an earlier version of a secret again: its value, type and description become the newest version. Of a " +
        "secret in the trash, brings it back with its versions.",
    )
    .argument("<path>", "the secret's path")
    .addOption(
      versionOption("--to <version>", "which version, as history lists it; the one before the newest by default"),
    );
  withOutput(withConnection(withDryRun(command)))
    .addHelpText("after", details)
    .action((typed, flags) => undo(io, typed, flags));
}

async function undo(io: Io, typed: string, flags: Flags): Promise<void> {
  const path = mustBePath(typed);
  await withClient(io, flags, async (client) => {
    const history = await historyOrNull(client, path);
    if (history === null) return bringBack(io, client, path, flags);
    const wanted = versionIn(history, flags.to);
    if (flags.dryRun) {
      const text = `${path} would go back to version ${wanted}: nothing was done`;
      return report(io, flags, { dryRun: true, path, restored: wanted }, text);
    }
    const { bytes, metadata, version } = await storeAgain(client, history, wanted);
    const done = { path, bytes, metadata, restored: wanted, version };
    report(io, flags, done, `${path} restored to version ${wanted}, stored as version ${version}`);
  });
}

/** Returns null for a secret that is in the trash. @throws CommandFailure notFound */
async function historyOrNull(client: StrongroomClient, path: string): Promise<SecretHistory | null> {
  try {
    return await client.versions(path);
  } catch (error) {
    if (!(error instanceof StrongroomError) || error.code !== "NOT_FOUND") throw error;
    return (await isInTrash(client, path)) ? null : mustGetHistory(client, path);
  }
}

async function bringBack(io: Io, client: StrongroomClient, path: string, flags: Flags): Promise<void> {
  if (flags.to !== undefined) {
    const shown = printable(path);
    const remedy = `bring it back with  strongroom undo ${shellWord(path)}  first`;
    throw new CommandFailure("conflict", `${shown} is in the trash: ${remedy}`);
  }
  if (flags.dryRun)
    return report(io, flags, { dryRun: true, path }, `${path} would be restored from the trash: nothing was done`);
  await client.untrash(path);
  report(io, flags, { path, untrashed: true }, `${path} is back from the trash`);
}

/** @throws CommandFailure notFound, conflict */
function versionIn(history: SecretHistory, to: number | undefined): number {
  const { path, versions } = history;
  const shown = printable(path);
  const wanted = to ?? versions[1]?.version;
  if (wanted === undefined) throw new CommandFailure("notFound", `${shown} has no earlier version: nothing was done`);
  if (wanted === versions[0]?.version) {
    throw new CommandFailure("conflict", `version ${wanted} of ${shown} is the newest: nothing was done`);
  }
  if (versions.every(({ version }) => version !== wanted)) throw noSuchVersion(history, wanted);
  return wanted;
}

/** Only while the history is as it was shown. @throws CommandFailure conflict */
async function storeAgain(
  client: StrongroomClient,
  { path, versions }: SecretHistory,
  wanted: number,
): Promise<Stored> {
  try {
    return await client.undo(path, wanted, { ifMatch: versions[0]?.etag });
  } catch (error) {
    if (!isConflict(error)) throw error;
    const next = `see  strongroom history ${shellWord(path)}`;
    throw new CommandFailure("conflict", `${printable(path)} changed in the meantime: nothing was done; ${next}`);
  }
}
