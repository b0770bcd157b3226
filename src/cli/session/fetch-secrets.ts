/** Reading many secrets: their list, and their values by path, in few requests. */
import type { Secret, SecretEntry, StrongroomClient } from "../../client/client.js";
import { readMany, secretOf } from "../../client/reading-many.js";
import { folderPrefix } from "../secrets/folder.js";
import { CommandFailure } from "./exit-codes.js";
import { noSecretsAt } from "./missing-secrets.js";
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
    for (const result of results) yield [paths[done++] ?? "", secretOf(result)] as const;
  }
}
