/** Reading many secrets: their list, and their values by path, in few requests. */
import type { Secret, SecretEntry, StrongroomClient } from "../../client/client.js";
import { readMany, secretOf } from "../../client/reading-many.js";
import { folderPrefix } from "../secrets/folder.js";
import { CommandFailure } from "./exit-codes.js";
import { printable } from "./output.js";

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
  for await (const [path, secret] of secretsAt(client, [...new Set(paths)])) {
    if (secret === undefined) missing.push(path);
    else secrets.set(path, secret);
  }
  refuseMissing(missing);
  return secrets;
}

/** Yields the secrets in order; in memory at a time are those of one request, which the server bounds. */
export async function* secretsAt(client: StrongroomClient, paths: readonly string[]) {
  let done = 0;
  for await (const results of readMany((gets) => client.batch(gets), paths)) {
    for (const result of results) yield [paths[done++] ?? "", secretOf(result)] as const;
  }
}

/** @throws CommandFailure notFound, unless nothing is missing */
export function refuseMissing(missing: readonly string[]): void {
  if (missing.length === 0) return;
  const names = missing.toSorted().map(printable).join(", ");
  throw new CommandFailure("notFound", `no secret at ${names}: store it, or correct the path`);
}

/** Returns the secret, or null when the path has none. */
export async function getIfThere(client: StrongroomClient, path: string): Promise<Secret | null> {
  return (await client.getOrUndefined(path)) ?? null;
}
