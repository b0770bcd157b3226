/** Reading many secrets: their list, and their values by path, a few requests at a time. */
import pMap from "p-map";
import type { Secret, SecretEntry, StrongroomClient } from "../../client/client.js";
import { folderPrefix } from "../secrets/folder.js";
import { CommandFailure } from "./exit-codes.js";
import { printable } from "./output.js";

/** Concurrent requests. */
export const concurrency = 16;

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

/** @throws CommandFailure notFound, that lists all missing paths */
export async function fetchSecrets(
  client: StrongroomClient,
  paths: Iterable<string>,
): Promise<ReadonlyMap<string, Secret>> {
  const secrets = new Map<string, Secret>();
  const missing: string[] = [];
  const fetchOne = async (path: string) => {
    const secret = await getIfThere(client, path);
    if (secret === null) missing.push(path);
    else secrets.set(path, secret);
  };
  await pMap(new Set(paths), fetchOne, { concurrency });
  if (missing.length === 0) return secrets;
  const names = missing.sort().map(printable).join(", ");
  throw new CommandFailure("notFound", `no secret at ${names}: store it, or correct the path`);
}

/** Returns the secret, or null when the path has none. */
export async function getIfThere(client: StrongroomClient, path: string): Promise<Secret | null> {
  return (await client.getOrUndefined(path)) ?? null;
}
