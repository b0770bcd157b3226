/** `strongroom history`: a secret's versions as a table, and the deletion of the earlier ones. */
import type { Command } from "commander";
import type { SecretHistory, StrongroomClient } from "../../client/client.js";
import { onlyWith } from "../kit/args/args.js";
import { mustBePath } from "../kit/args/paths.js";
import { isConflict } from "../kit/connection/changes.js";
import { mustGetHistory } from "../kit/connection/secrets.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import {
  counted,
  localMinute,
  type OutputFlags,
  painter,
  printable,
  printJson,
  printRows,
  report,
  shortened,
  withResult,
} from "../kit/output.js";
import { mustConfirm, withYes } from "../kit/prompts/prompt.js";

type Flags = OutputFlags & ConnectionFlags & { readonly prune?: true; readonly yes?: true; readonly dryRun?: true };

export function define(command: Command, io: Io): void {
  command
    .description(
      "Lists the versions of a secret that are kept, newest first, without their values. With --prune, deletes all but " +
        "the newest.",
    )
    .argument("<path>", "the secret's path")
    .option("--prune", "delete all earlier versions permanently")
    .option("--dry-run", "show what --prune would delete, without doing it");
  withYes(command);
  for (const flag of ["yes", "dryRun"]) onlyWith(command, flag, "prune");
  withResult(withConnection(command)).action((typed, flags) => history(io, typed, flags));
}

async function history(io: Io, typed: string, flags: Flags): Promise<void> {
  const path = mustBePath(typed);
  const found = await withClient(io, flags, (client) => mustGetHistory(client, path));
  if (flags.prune) return prune(io, found, flags);
  if (flags.json) printJson(io, found);
  else printVersions(io, found);
  if (found.damaged === undefined) return;
  const damaged = `${counted(found.damaged, "earlier version")} of ${printable(path)} cannot be read`;
  throw new CommandFailure("findings", `${damaged}: damaged; see  strongroom doctor --open`);
}

function printVersions(io: Io, { versions }: SecretHistory): void {
  const paint = painter(io);
  const width = String(versions[0]?.version ?? "").length;
  for (const { version, updatedAt, metadata } of versions) {
    const type = (metadata.type ?? "-").padEnd("oauth-token".length);
    const row = `${String(version).padStart(width)}  ${localMinute(new Date(updatedAt))}  ${type}`;
    const left = (io.stdout.columns ?? Number.POSITIVE_INFINITY) - row.length - 2;
    const description = shortened(printable(metadata.description ?? ""), left);
    printRows(io, `${`${row}  ${description && paint("dim", description)}`.trimEnd()}\n`);
  }
}

async function prune(io: Io, { path, versions, damaged = 0 }: SecretHistory, flags: Flags): Promise<void> {
  const earlier = counted(versions.length - 1 + damaged, "earlier version");
  const shown = printable(path);
  if (flags.dryRun)
    return report(io, flags, { dryRun: true, path }, `${earlier} of ${path} would be deleted: nothing was done`);
  if (versions.length - 1 + damaged === 0)
    return report(io, flags, { path }, `${path} has no earlier versions: nothing was done`);
  await mustConfirm(io, `Delete ${earlier} of ${shown} permanently?`, flags);
  await withClient(io, flags, (client) => pruneUnchanged(client, path, versions[0]?.etag));
  report(io, flags, { path }, `${path}: ${earlier} deleted`);
}

/** Deletes only what was asked about: a version stored since then, and the one before it, stay. */
async function pruneUnchanged(client: StrongroomClient, path: string, ifMatch: string | undefined): Promise<void> {
  try {
    await client.prune(path, { ifMatch });
  } catch (error) {
    if (!isConflict(error)) throw error;
    throw new CommandFailure(
      "conflict",
      `${printable(path)} changed in the meantime: nothing was deleted; check it and try again`,
    );
  }
}
