/** Messages for a path without a secret: a folder, a near miss, or a leading slash. */
import { type Secret, type StrongroomClient, StrongroomError } from "../../client/client.js";
import { folderPrefix } from "../secrets/folder.js";
import { CommandFailure } from "./exit-codes.js";
import { printable } from "./output.js";
import { suggestion } from "./suggestion.js";

/** Returns the secret, or null when the path has none. */
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
  const several = `no secret at ${names}: correct the paths${elsewhere}`;
  const problem = others.length === 0 ? await explainMissing(client, first, asFolder) : several;
  return new CommandFailure("notFound", `${prefix}${problem}`);
}

/** Returns what to say of a path that has no secret; `asFolder`: what to do if it is a folder. */
export async function explainMissing(
  client: StrongroomClient,
  path: string,
  asFolder = `strongroom ls ${printable(path)}/`,
): Promise<string> {
  const shown = printable(path);
  if ((await pathsUnder(client, `${path}/`)).length > 0) return `${shown} is a folder: ${asFolder}`;
  return `no secret at ${shown}${suggestion(path, await pathsNear(client, path)) || elsewhere}`;
}

const elsewhere = "; strongroom ls  lists all secrets";

/** Returns what to say of a folder in which there is no secret. */
export async function explainEmptyFolder(client: StrongroomClient, name: string): Promise<string> {
  const folder = folderPrefix(name);
  const path = folder.slice(0, -1);
  const nothing = `nothing under ${printable(folder)}`;
  if (name.startsWith("/")) {
    return `${nothing}: paths have no leading slash, try  strongroom ls ${printable(name.replace(/^\/+/, ""))}`;
  }
  const near = await pathsNear(client, path);
  if (near.includes(path)) return `${nothing}: ${printable(path)} is a secret, not a folder`;
  const folders = foldersOf(near);
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

function foldersOf(paths: readonly string[]): string[] {
  const folders = paths.flatMap((path) => [...path.matchAll(/\//g)].map(({ index }) => path.slice(0, index + 1)));
  return [...new Set(folders)];
}
