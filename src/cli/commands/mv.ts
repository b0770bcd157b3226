/** `strongroom mv`, and what `strongroom cp` has in common with it: moves and copies of a secret or a folder, all or nothing. */
import type { Command } from "commander";
import type { BatchOperation, StrongroomClient } from "../../client/client.js";
import { EarlierOption } from "../kit/args/args.js";
import { folderPrefix, mustBePath, targetPath } from "../kit/args/paths.js";
import { changeAll, isConflict, mustBeAtOnce, type StepFlags, withSteps } from "../kit/connection/changes.js";
import {
  explainEmptyFolder,
  explainMissing,
  fateInTrash,
  fetchSecrets,
  type Listed,
  listFolder,
  lookAt,
  pathsInTrash,
} from "../kit/connection/secrets.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import { folderWord, shellWord } from "../kit/hints.js";
import type { Io } from "../kit/io.js";
import { counted, type OutputFlags, printable, report, withDryRun, withOutput } from "../kit/output.js";

export function define(command: Command, io: Io): void {
  command.description(
    "Moves or renames a secret or a folder. Secrets keep their types, descriptions, times and versions.",
  );
  defineTransfer(io, command, "move");
}

type Kind = "move" | "copy";

type Flags = OutputFlags &
  ConnectionFlags &
  StepFlags & { readonly replace?: true; readonly recursive?: true; readonly dryRun?: true };

type Pair = { readonly from: string; readonly to: string };

/** `existing`: what is stored at the targets. */
type Plan = { readonly pairs: readonly Pair[]; readonly existing: Listed; readonly folder: Pair | null };

export function defineTransfer(io: Io, command: Command, kind: Kind): void {
  const changed = command
    .argument("<from>", "the secret's path; with a / at its end, a folder")
    .argument("<to>", "the new path; with a / at its end, a folder in which the secret keeps its name")
    .option("-r, --recursive", `${kind} a folder; a / at its end does the same`)
    .option("-f, --replace", "replace existing secrets")
    .addOption(new EarlierOption("--force", "replace"));
  const done = kind === "move" ? "moved" : "copied";
  withOutput(withConnection(withDryRun(withSteps(changed))))
    .addHelpText("after", `\nA folder is ${done} as a whole: app/x becomes web/x, also if web/ has secrets.`)
    .action((from: string, to: string, flags: Flags) => transfer(io, kind, { from, to }, flags));
}

async function transfer(io: Io, kind: Kind, given: Pair, flags: Flags): Promise<void> {
  const plan = await withClient(io, flags, async (client) => {
    const found = await planFor(client, kind, given, flags);
    mustBeAtOnce(found.pairs.length, flags);
    refuseExisting([...found.existing.keys()], flags);
    const displaced = kind === "move" ? await displacedBy(client, found) : [];
    if (!flags.dryRun) await run(client, kind, found, flags);
    return { ...found, displaced };
  });
  const verb = kind === "move" ? "moved" : "copied";
  const { what, names } = described(plan);
  const dry = flags.dryRun && { dryRun: true };
  const text = flags.dryRun
    ? `${given.from} would be ${verb} to ${what.to}: nothing was done`
    : `${what.from} ${verb} to ${what.to}`;
  const count = plan.folder === null ? "" : ` (${counted(plan.pairs.length, "secret")})`;
  report(io, flags, { ...dry, ...names }, `${text}${count}${kind === "move" ? replacedNote(plan, flags) : ""}`);
}

/** Returns the secrets already in the trash at the paths that a move replaces. */
async function displacedBy(client: StrongroomClient, { existing }: Plan): Promise<readonly string[]> {
  return existing.size === 0 ? [] : pathsInTrash(client, [...existing.keys()]);
}

/** A move replaces a secret with its history. */
function replacedNote(
  { existing, displaced }: Plan & { readonly displaced: readonly string[] },
  { dryRun }: Flags,
): string {
  if (existing.size === 0 || dryRun) return "";
  const replaced = existing.size === 1 ? "the secret that it replaced is" : `the ${existing.size} that it replaced are`;
  return `; ${replaced} in the trash${fateInTrash(displaced)}`;
}

function described({ pairs: [first], pairs, existing, folder }: Plan) {
  const single = first ?? { from: "", to: "" };
  if (folder === null) return { what: single, names: { ...single, replaced: existing.size > 0 } };
  return { what: folder, names: { ...folder, secrets: pairs.length, replaced: existing.size } };
}

async function planFor(client: StrongroomClient, kind: Kind, { from, to }: Pair, flags: Flags): Promise<Plan> {
  const isFolder = from.endsWith("/");
  const listed: Listed = isFolder || flags.recursive ? await listFolder(client, from) : new Map();
  if (listed.size > 0)
    return folderPlan(client, kind, { from: folderPrefix(from), to: folderPrefix(to) }, [...listed.keys()]);
  if (isFolder) throw new CommandFailure("notFound", await explainEmptyFolder(client, from));
  return singlePlan(client, kind, { from, to });
}

async function singlePlan(client: StrongroomClient, kind: Kind, given: Pair): Promise<Plan> {
  const from = mustBePath(given.from);
  const to = mustBePath(targetPath(from, given.to));
  if (from === to) throw new CommandFailure("usage", "source and target are the same path: nothing was done");
  const existing = await lookAt(client, to);
  if ((await lookAt(client, from)) === null) {
    const asFolder = `strongroom ${kind === "move" ? "mv" : "cp"} ${folderWord(from)} ${shellWord(given.to)}`;
    throw new CommandFailure("notFound", await explainMissing(client, from, asFolder));
  }
  return {
    pairs: [{ from, to }],
    existing: new Map(existing === null ? [] : [[to, existing.entry?.etag]]),
    folder: null,
  };
}

async function folderPlan(client: StrongroomClient, kind: Kind, folder: Pair, paths: readonly string[]): Promise<Plan> {
  if (folder.to !== "") mustBePath(folder.to.slice(0, -1));
  if (folder.to.startsWith(folder.from)) {
    const where =
      folder.to === folder.from ? "source and target are the same folder" : "a folder cannot be put into itself";
    throw new CommandFailure("usage", `${where}: nothing was done`);
  }
  const pairs = paths.map((from) => ({ from, to: `${folder.to}${from.slice(folder.from.length)}` }));
  const targets = new Set(pairs.map(({ to }) => to));
  const twice = kind === "move" ? paths.find((path) => targets.has(path)) : undefined;
  if (twice !== undefined) {
    const problem = `source and target overlap at ${printable(twice)}`;
    throw new CommandFailure("usage", `${problem}: move via a temporary folder; nothing was done`);
  }
  const there = await listFolder(client, folder.to);
  return {
    pairs,
    existing: new Map([...there].filter(([path]) => targets.has(path))),
    folder: { ...folder, to: folder.to || "/" },
  };
}

const maxNamed = 5;

function refuseExisting(paths: readonly string[], { replace }: Pick<Flags, "replace">): void {
  if (paths.length === 0 || replace) return;
  const more = paths.length > maxNamed ? ` and ${paths.length - maxNamed} more` : "";
  const names = `${paths.slice(0, maxNamed).map(printable).join(", ")}${more}`;
  const problem =
    paths.length === 1
      ? `${names} already exists: --replace replaces it`
      : `${names} already exist: --replace replaces them`;
  throw new CommandFailure("conflict", problem);
}

async function run(client: StrongroomClient, kind: Kind, plan: Plan, { replace }: Flags): Promise<void> {
  const operations =
    kind === "move"
      ? plan.pairs.map(({ from, to }) => ({ move: from, to, ifAbsent: !replace, trashReplaced: replace }))
      : await copyOperations(client, plan, replace);
  try {
    await changeAll(client, operations);
  } catch (error) {
    if (!isConflict(error)) throw error;
    const target = plan.pairs[error.index ?? 0]?.to ?? "";
    if (!replace) refuseExisting([target], {});
    throw new CommandFailure(
      "conflict",
      `${printable(target)} changed in the meantime: nothing was done; check it and try again`,
    );
  }
}

/** A secret that is replaced keeps its versions: it gets the value by a put. */
async function copyOperations(
  client: StrongroomClient,
  { pairs, existing }: Plan,
  replace: true | undefined,
): Promise<BatchOperation[]> {
  const replacing = pairs.filter(({ to }) => existing.has(to)).map(({ from }) => from);
  const secrets = await fetchSecrets(client, replacing);
  return pairs.map(({ from, to }) => {
    const secret = secrets.get(from);
    if (secret === undefined) return { copy: from, to, ifAbsent: !replace };
    const { encoding, metadata } = secret;
    return { put: to, value: secret.reveal(), encoding, ...metadata, ifMatch: existing.get(to) };
  });
}
