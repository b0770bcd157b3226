/** Folders of secrets: what every command means by a prefix. */
import type { SecretList, StrongroomClient } from "../../client/client.js";
import { problemOfPath } from "../session/references.js";
import { canonical, lookAt } from "../session/secret-arguments.js";

/** Returns what the paths in a folder begin with: `app` and `app/` are the same; `/`, or nothing, is the whole vault. */
export function folderPrefix(folder: string): string {
  const path = canonical(folder).replace(/\/$/, "");
  return path === "" ? "" : `${path}/`;
}

/** Tags by path; none for a damaged secret. */
export type Listed = ReadonlyMap<string, string | undefined>;

/** Lists the secrets of a folder, those that are damaged too. */
export async function listFolder(client: StrongroomClient, folder: string): Promise<Listed> {
  const found = new Map<string, string | undefined>();
  for await (const { entries, damaged = [] } of client.pages({ prefix: folderPrefix(folder), limit: 1000 })) {
    for (const { path, etag } of entries) found.set(path, etag);
    for (const path of damaged) found.set(path, undefined);
  }
  return found;
}

/** Lists a folder; where there is none, but a secret of this name, lists that. */
export async function* pagesOf(client: StrongroomClient, name: string): AsyncGenerator<SecretList, void, void> {
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
