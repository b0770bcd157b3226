/** Judgements of all values of a range of secrets by the key worker, in small pieces between which gets have their turn. */
import type { AssessPart, Bytes } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { NameQuery } from "./list.js";
import type { SealedSpace } from "./space.js";
import { wordSlots } from "./word-list.js";

/** `key`: chosen by the caller for one check; digests of different checks cannot be compared. */
export type CheckQuery = NameQuery & {
  readonly limit: number;
  readonly key: Bytes;
  readonly parts: readonly AssessPart[];
  /** Called before each piece: throws when the caller may no longer have it. */
  readonly permit?: () => void;
};

/** In one message to the key worker: few, so that a get behind it hardly waits. */
const secretsAtOnce = 16;
const bytesAtOnce = 512 * 1024;

/** Pause after a message, in milliseconds. */
const restMs = 1;

type Secret = { readonly path: string; readonly blob: Bytes };

/** Returns the response, a JSON object, in pieces. @throws VaultError VAULT_LOCKED, UNAVAILABLE */
export async function checkSecrets(
  space: SealedSpace,
  clock: Clock,
  query: CheckQuery,
): Promise<{ readonly pieces: Bytes[]; readonly count: number }> {
  const words = await wordSlots();
  const found = await space.whileUnlocked(() => space.names(query, query.limit + 1));
  const paths = found.slice(0, query.limit);
  const responses: Bytes[] = [];
  const damaged: string[] = [];
  for (let at = 0; at < paths.length; ) {
    query.permit?.();
    const done = await space.whileUnlocked(async () => {
      const secrets = await read(space, paths.slice(at, at + secretsAtOnce));
      const { key, parts: wanted } = query;
      const { response, damaged: unread } = await space.ask({
        op: "assess",
        secrets: secrets.intact,
        key,
        parts: wanted,
        words,
      });
      if (response.length > 0) responses.push(response);
      damaged.push(...secrets.foreign, ...unread);
      return secrets.count;
    });
    at += done;
    await new Promise<void>((resolve) => clock.after(restMs, resolve));
  }
  const next = found.length > paths.length ? paths.at(-1) : undefined;
  return { pieces: assembled(responses, damaged, next), count: paths.length };
}

type ReadSecrets = {
  readonly intact: readonly Secret[];
  /** Paths whose file is no blob. */
  readonly foreign: readonly string[];
  /** Number of paths that were read, missing ones included. */
  readonly count: number;
};

async function read(space: SealedSpace, paths: readonly string[]): Promise<ReadSecrets> {
  const [intact, foreign]: [Secret[], string[]] = [[], []];
  let [count, bytes] = [0, 0];
  for (const path of paths) {
    const blob = await readOne(space, path);
    count++;
    if (blob === "foreign") foreign.push(path);
    else if (blob !== null) intact.push({ path, blob });
    bytes += blob === null || blob === "foreign" ? 0 : blob.length;
    if (bytes > bytesAtOnce) break;
  }
  return { intact, foreign, count };
}

async function readOne(space: SealedSpace, path: string): Promise<Bytes | "foreign" | null> {
  try {
    return await space.current(path);
  } catch (error) {
    if (error instanceof VaultError && error.code === "INTEGRITY") return "foreign";
    throw error;
  }
}

function assembled(responses: readonly Bytes[], damaged: readonly string[], next: string | undefined): Bytes[] {
  const text = (json: string): Bytes => new TextEncoder().encode(json);
  const entries = responses.flatMap((response, i) => (i === 0 ? [response] : [text(","), response]));
  const rest = JSON.stringify({ ...(next !== undefined && { next }), ...(damaged.length > 0 && { damaged }) });
  return [text('{"entries":['), ...entries, text(rest === "{}" ? "]}" : `],${rest.slice(1)}`)];
}
