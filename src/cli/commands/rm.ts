/** `strongroom rm`: moves to the trash or, with --permanent, asks first and deletes; all or nothing. */
import type { Command } from "commander";
import { type StrongroomClient, StrongroomError } from "../../client/client.js";
import { EarlierOption } from "../kit/args/args.js";
import { folderPrefix, mustBePath } from "../kit/args/paths.js";
import { changeAll, mustBeAtOnce, type StepFlags, withSteps } from "../kit/connection/changes.js";
import {
  explainEmptyFolder,
  fateInTrash,
  listFolder,
  lookAt,
  noSecretsAt,
  pathsInTrash,
} from "../kit/connection/secrets.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import { folderWord, shellWord } from "../kit/hints.js";
import type { Io } from "../kit/io.js";
import { counted, type OutputFlags, printable, report, withDryRun, withOutput } from "../kit/output.js";
import { mustConfirm, withYes } from "../kit/prompts/prompt.js";

type Flags = OutputFlags &
  ConnectionFlags &
  StepFlags & { readonly permanent?: true; readonly yes?: true; readonly recursive?: true; readonly dryRun?: true };

/** `shown`: what the user is told, folders by their names. */
type Found = { readonly paths: readonly string[]; readonly shown: readonly string[] };

export function define(command: Command, io: Io): void {
  command
    .description(
      "Moves secrets with their earlier versions to the trash: all of them or, if one does not exist, none. The server " +
        "destroys them after 30 days, or as --keep-trash-days says; strongroom undo brings one back.",
    )
    .argument("<path...>", "the secrets' paths; with -r, folders too")
    .option("-r, --recursive", "delete folders with all that is in them")
    .option("--permanent", "delete for good, without the trash: asks first")
    .addOption(new EarlierOption("-f, --force", "yes"))
    .option("--non-interactive", "never prompt: fail without --yes");
  withOutput(withConnection(withDryRun(withSteps(withYes(command))))).action((given, flags) => rm(io, given, flags));
}

async function rm(io: Io, given: readonly string[], flags: Flags): Promise<void> {
  const { paths, shown } = await withClient(io, flags, (client) => mustFind(client, given, flags));
  mustBeAtOnce(paths.length, flags);
  const names = shown.join(", ");
  const done = flags.permanent ? "deleted" : "moved to the trash";
  const displaced = flags.permanent ? [] : await withClient(io, flags, (client) => pathsInTrash(client, paths));
  const lost = displaced.length === 0 ? {} : { destroyed: displaced };
  const result = flags.permanent ? { deleted: paths } : { trashed: paths, ...lost };
  if (flags.dryRun) {
    const more = displaced.length === 0 ? "" : `, where it would destroy ${displaced.map(printable).join(", ")}`;
    return report(io, flags, { dryRun: true, ...result }, `would be ${done}: ${names}${more}: nothing was done`);
  }
  if (flags.permanent) await mustConfirm(io, deletionQuestion(shown, paths.length), flags);
  await withClient(io, flags, (client) => deleteAll(client, paths, flags));
  report(io, flags, result, `${done}: ${names}${flags.permanent ? "" : `${wayBack(paths)}${fateInTrash(displaced)}`}`);
}

function wayBack([path = "", another]: readonly string[]): string {
  const ways = `strongroom undo ${another === undefined ? shellWord(path) : "PATH"}`;
  return `; bring ${another === undefined ? "it" : "one"} back with  ${ways}`;
}

function deletionQuestion(shown: readonly string[], count: number): string {
  return `Delete ${shown.map(printable).join(", ")} with ${count === 1 ? "its" : "their"} history?`;
}

async function mustFind(client: StrongroomClient, given: readonly string[], flags: Flags): Promise<Found> {
  const found: Found[] = [];
  const missing: string[] = [];
  for (const name of given) {
    const folder = flags.recursive ? await findFolder(client, name) : null;
    const path = folder === null ? mustBeSecret(name) : "";
    if (folder === null && (await lookAt(client, path)) === null) missing.push(path);
    found.push(folder ?? { paths: [path], shown: [path] });
  }
  if (missing.length > 0) {
    const asFolder = `strongroom rm -r ${folderWord(missing[0] ?? "")}`;
    throw await noSecretsAt(client, missing, { asFolder, prefix: "nothing was done: " });
  }
  return { paths: unique(found.flatMap(({ paths }) => paths)), shown: unique(found.flatMap(({ shown }) => shown)) };
}

function unique(names: readonly string[]): string[] {
  return [...new Set(names)];
}

/** Returns null for what may be a secret, and is no folder. */
async function findFolder(client: StrongroomClient, name: string): Promise<Found | null> {
  const paths = [...(await listFolder(client, mustBeFolder(name))).keys()];
  if (paths.length > 0) return { paths, shown: [`${folderPrefix(name)} (${counted(paths.length, "secret")})`] };
  if (!name.endsWith("/")) return null;
  throw new CommandFailure("notFound", `nothing was done: ${await explainEmptyFolder(client, name)}`);
}

/** @throws CommandFailure usage, for the whole vault */
function mustBeFolder(name: string): string {
  if (folderPrefix(name) !== "") return name;
  const ways = "delete its folders one by one, or replace the vault with  strongroom init --force";
  throw new CommandFailure("usage", `this would delete every secret: ${ways}`);
}

function mustBeSecret(name: string): string {
  if (!/[^/]\/$/.test(name)) return mustBePath(name);
  const remedy = `delete it with  strongroom rm -r ${shellWord(name)}`;
  throw new CommandFailure("usage", `${printable(name)}: this is a folder: ${remedy}`);
}

/** @throws CommandFailure notFound, for a secret that another program has deleted since */
async function deleteAll(
  client: StrongroomClient,
  paths: readonly string[],
  { permanent }: Pick<Flags, "permanent">,
): Promise<void> {
  try {
    await changeAll(
      client,
      paths.map((path) => (permanent ? { delete: path } : { trash: path })),
    );
  } catch (error) {
    if (!(error instanceof StrongroomError) || error.code !== "NOT_FOUND") throw error;
    const path = printable(paths[error.index ?? 0] ?? "");
    throw new CommandFailure("notFound", `${path} was deleted by another program: nothing was done; try again`);
  }
}
