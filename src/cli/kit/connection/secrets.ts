/** Reading of secrets: folders, values in few requests, versions, and the explanation of what is missing. */

import { Option } from "commander";
import { readMany, resultSecret } from "../../../client/batch.js";
import {
  type Secret,
  type SecretEntry,
  type SecretHistory,
  type SecretList,
  type StrongroomClient,
  StrongroomError,
  type TrashEntry,
} from "../../../client/client.js";
import { integer, Problem } from "../../../config/readers.js";
import { suggestion } from "../args/args.js";
import { canonical, folderPrefix, mustBePath, problemOfPath, scheme } from "../args/paths.js";
import { CommandFailure } from "../errors.js";
import { folderWord, shellWord } from "../hints.js";
import { printable } from "../output.js";

/**
 * Lists a folder, by default the whole vault.
 * @throws CommandFailure findings, when some metadata is damaged, so that a part is not mistaken for the whole
 */
export async function listSecrets(client: StrongroomClient, folder = ""): Promise<SecretEntry[]> {
  const entries: SecretEntry[] = [];
  const damaged: string[] = [];
  for await (const page of client.pages({ prefix: folderPrefix(folder), limit: 1000 })) {
    entries.push(...page.entries);
    damaged.push(...(page.damaged ?? []));
  }
  if (damaged.length === 0) return entries;
  throw new CommandFailure("findings", `damaged secrets: ${damaged.map(printable).join(", ")}; see  strongroom doctor`);
}

/** @throws CommandFailure notFound, with a suggestion, or the list of all missing paths */
export async function fetchSecrets(
  client: StrongroomClient,
  paths: Iterable<string>,
): Promise<ReadonlyMap<string, Secret>> {
  const secrets = new Map<string, Secret>();
  const missing: string[] = [];
  for await (const [path, secret] of secretsAt(client, [...new Set(paths)])) {
    if (secret === undefined) missing.push(path);
    else secrets.set(path, secret);
  }
  if (missing.length > 0) throw await noSecretsAt(client, missing);
  return secrets;
}

/** Yields the secrets in order; in memory at a time are those of one request, which the server bounds. */
export async function* secretsAt(client: StrongroomClient, paths: readonly string[]) {
  let done = 0;
  for await (const results of readMany((gets) => client.batch(gets), paths)) {
    for (const result of results) yield [paths[done++] ?? "", resultSecret(result)] as const;
  }
}

export async function getIfThere(client: StrongroomClient, path: string): Promise<Secret | null> {
  return (await client.getOrUndefined(path)) ?? null;
}

/** @throws CommandFailure notFound, with a suggestion */
export async function mustGet(client: StrongroomClient, path: string): Promise<Secret> {
  const secret = await getIfThere(client, path);
  if (secret !== null) return secret;
  throw await noSecretsAt(client, [path]);
}

/**
 * Returns the failure for missing paths: a suggestion for one, a list of several. `asFolder`: what to do if the only one
 * is a folder; `prefix`: what the message says first.
 */
export async function noSecretsAt(
  client: StrongroomClient,
  missing: readonly string[],
  { asFolder, prefix = "" }: { readonly asFolder?: string; readonly prefix?: string } = {},
): Promise<CommandFailure> {
  const [first = "", ...others] = missing;
  const names = missing.toSorted().map(printable).join(", ");
  const asField = missing.some((path) => path.includes("#")) ? `; a field is written  ${scheme}path#field` : "";
  const several = `no secret at ${names}: correct the paths${asField}${elsewhere}`;
  const problem = others.length === 0 ? await explainMissing(client, first, asFolder) : several;
  return new CommandFailure("notFound", `${prefix}${problem}`);
}

/** Returns what to say of a path that has no secret; `asFolder`: what to do if it is a folder. */
export async function explainMissing(
  client: StrongroomClient,
  path: string,
  asFolder = `strongroom ls ${folderWord(path)}`,
): Promise<string> {
  const shown = printable(path);
  if (await isInTrash(client, path))
    return `${shown} is in the trash: bring it back with  strongroom undo ${shellWord(path)}`;
  if ((await pathsUnder(client, `${path}/`)).length > 0) return `${shown} is a folder: ${asFolder}`;
  if (/^strongroom:/i.test(path)) return `no secret at ${shown}: a reference begins with ${scheme}`;
  const [whole = "", field = ""] = path.split(/#(.*)/s);
  const isField = field !== "" && (await pathsUnder(client, whole)).includes(whole);
  if (isField) return `no secret at ${shown}. ${fieldHint(whole, field)}`;
  const near = await pathsNear(client, path);
  const folder = path.lastIndexOf("/") + 1;
  const common = near.every((other) => other.startsWith(path.slice(0, folder))) ? folder : 0;
  return `no secret at ${shown}${suggestion(path, near, common) || elsewhere}`;
}

function fieldHint(path: string, field: string): string {
  const [shownPath, shownField] = [path, field].map(printable);
  const reference = `${scheme}${printable(path.replaceAll("%", "%25"))}#${encodeURIComponent(field)}`;
  return `For the field ${shownField} of ${shownPath}, use  ${reference}  or  strongroom get ${shellWord(path)} --field ${shellWord(field)}`;
}

/** A token that cannot list sees nothing there. */
export async function isInTrash(client: StrongroomClient, path: string): Promise<boolean> {
  try {
    const { entries, damaged = [] } = await client.listTrash({ prefix: path, limit: 1 });
    return [entries[0]?.path, damaged[0]].includes(path);
  } catch (error) {
    if (error instanceof StrongroomError && error.code === "FORBIDDEN") return false;
    throw error;
  }
}

type Trashed = { readonly entries: readonly TrashEntry[]; readonly damaged: readonly string[] };

export async function trashIn(client: StrongroomClient, prefix: string, signal?: AbortSignal): Promise<Trashed> {
  const entries: TrashEntry[] = [];
  const damaged: string[] = [];
  for (let after: string | undefined = ""; after !== undefined; ) {
    const page = await client.listTrash({ prefix, after, limit: 1000, ...(signal && { signal }) });
    entries.push(...page.entries);
    damaged.push(...(page.damaged ?? []));
    after = page.next;
  }
  return { entries, damaged };
}

/** Returns those of the paths that are in the trash; none for a token that cannot list. */
export async function pathsInTrash(client: StrongroomClient, paths: readonly string[]): Promise<readonly string[]> {
  try {
    const { entries, damaged } = await trashIn(client, commonStart(paths));
    const there = new Set([...entries.map(({ path }) => path), ...damaged]);
    return paths.filter((path) => there.has(path));
  } catch (error) {
    if (error instanceof StrongroomError && error.code === "FORBIDDEN") return [];
    throw error;
  }
}

function commonStart([first = "", ...others]: readonly string[]): string {
  let start = first;
  for (const path of others) while (!path.startsWith(start)) start = start.slice(0, -1);
  return start;
}

/** Returns a message about secrets displaced in the trash, which holds one secret per path. */
export function fateInTrash(paths: readonly string[]): string {
  if (paths.length === 0) return "";
  const [before, is] = paths.length === 1 ? ["the secret", "is"] : ["the secrets", "are"];
  return `; ${before} that was in the trash before at ${paths.map(printable).join(", ")} ${is} destroyed`;
}

const elsewhere = "; strongroom ls  lists all secrets";

/** Returns what to say of a folder in which there is no secret. */
export async function explainEmptyFolder(client: StrongroomClient, name: string): Promise<string> {
  const folder = folderPrefix(name);
  if (folder === "") return "the vault has no secrets: store one with  strongroom put PATH";
  const path = folder.slice(0, -1);
  const nothing = `nothing under ${printable(folder)}`;
  if (name.startsWith("/")) {
    return `${nothing}: paths have no leading slash, try  strongroom ls ${shellWord(name.replace(/^\/+/, ""))}`;
  }
  if (name.startsWith(scheme)) {
    return `${nothing}: a folder is needed, not a reference: write ${printable(name.slice(scheme.length))}`;
  }
  const near = await pathsNear(client, path);
  if (near.includes(path)) return `${nothing}: ${printable(path)} is a secret, not a folder`;
  const folders = parentFolders(near);
  return `${nothing}${suggestion(folder, folders) || elsewhere}`;
}

/** Paths of the same folder; when it has none, of the whole vault. A page is enough for a suggestion. */
async function pathsNear(client: StrongroomClient, path: string): Promise<string[]> {
  const folder = path.slice(0, path.lastIndexOf("/") + 1);
  const siblings = await pathsUnder(client, folder);
  return siblings.length > 0 || folder === "" ? siblings : pathsUnder(client, "");
}

/** None when they may not be listed: the message is then shorter. */
async function pathsUnder(client: StrongroomClient, prefix: string): Promise<string[]> {
  try {
    return (await client.list({ prefix, limit: 1000 })).entries.map(({ path }) => path);
  } catch (error) {
    if (error instanceof StrongroomError) return [];
    throw error;
  }
}

function parentFolders(paths: readonly string[]): string[] {
  const folders = paths.flatMap((path) => [...path.matchAll(/\//g)].map(({ index }) => path.slice(0, index + 1)));
  return [...new Set(folders)];
}

const anyVersion = integer(1, Number.MAX_SAFE_INTEGER);

export function versionNumber(text: string): number {
  try {
    return anyVersion(text);
  } catch {
    throw new Problem("the number of a version, as history lists it");
  }
}

export function versionOption(flags: string, meaning: string): Option {
  return new Option(flags, meaning).argParser(versionNumber);
}

/** Returns the versions, newest first. @throws CommandFailure notFound; StrongroomError */
export async function mustGetHistory(client: StrongroomClient, path: string): Promise<SecretHistory> {
  try {
    return await client.versions(path);
  } catch (error) {
    if (!isMissing(error)) throw error;
    throw new CommandFailure("notFound", await explainMissing(client, path));
  }
}

/** @throws CommandFailure notFound; StrongroomError */
export async function mustGetVersion(client: StrongroomClient, path: string, version: number): Promise<Secret> {
  try {
    return await client.version(path, version);
  } catch (error) {
    if (!isMissing(error)) throw error;
    throw noSuchVersion(await mustGetHistory(client, path), version);
  }
}

export function noSuchVersion({ path, versions }: SecretHistory, version: number): CommandFailure {
  const kept = versions.map((each) => each.version).join(", ");
  return new CommandFailure("notFound", `${printable(path)} has no version ${version}: it has ${kept}`);
}

function isMissing(error: unknown): boolean {
  return error instanceof StrongroomError && error.code === "NOT_FOUND";
}

/** A secret as a list shows it; undefined when it is damaged. */
type Present = { readonly entry: SecretEntry | undefined };

/** Returns what is known of a secret without its value, or null without one. @throws CommandFailure usage, for an invalid path */
export async function lookAt(client: StrongroomClient, path: string): Promise<Present | null> {
  const wanted = mustBePath(path);
  const { entries, damaged = [] } = await client.list({ prefix: wanted, limit: 1 });
  const entry = entries.find((found) => found.path === wanted);
  return entry === undefined && !damaged.includes(wanted) ? null : { entry };
}

/** Etags by path; none for a damaged secret. */
export type Listed = ReadonlyMap<string, string | undefined>;

/** Lists the secrets of a folder, including damaged ones. */
export async function listFolder(client: StrongroomClient, folder: string): Promise<Listed> {
  const found = new Map<string, string | undefined>();
  for await (const { entries, damaged = [] } of client.pages({ prefix: folderPrefix(folder), limit: 1000 })) {
    for (const { path, etag } of entries) found.set(path, etag);
    for (const path of damaged) found.set(path, undefined);
  }
  return found;
}

/** Lists a folder; where there is none, but a secret of this name, lists that. */
export async function* folderPages(client: StrongroomClient, name: string): AsyncGenerator<SecretList, void, void> {
  const prefix = folderPrefix(name);
  for await (const page of client.pages({ prefix, limit: 1000 })) {
    const isEmpty = page.entries.length === 0 && page.damaged === undefined;
    yield isEmpty ? await secretNamed(client, name) : page;
  }
}

async function secretNamed(client: StrongroomClient, name: string): Promise<SecretList> {
  const found = problemOfPath(name) === null ? await lookAt(client, name) : null;
  if (found === null) return { entries: [] };
  return found.entry === undefined ? { entries: [], damaged: [canonical(name)] } : { entries: [found.entry] };
}
