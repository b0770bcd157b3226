/** A put that keeps the current metadata unless it is given others, also while others write. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Metadata, SecretList, Stored } from "./api-types.js";
import { StrongroomError } from "./errors.js";
import type { ListOptions, PutOptions } from "./options.js";

/** Each further attempt means that another writer was faster. */
const maxTries = 20;

export type Requests = {
  readonly list: (options: ListOptions) => Promise<SecretList>;
  readonly put: (options: PutOptions) => Promise<Stored>;
};

/** Whether a put with these options must first look up the current metadata. */
export function keepsMetadata({ type, description, replaceMetadata, ifAbsent }: PutOptions): boolean {
  return !replaceMetadata && !ifAbsent && (type === undefined || description === undefined);
}

/**
 * Looks up the current metadata, then puts on condition that it is still current: by the caller's etag, or else by the one
 * that was just listed.
 * @throws StrongroomError
 */
export async function putKeeping({ list, put }: Requests, path: string, options: PutOptions): Promise<Stored> {
  const { signal, timeoutMs } = options;
  for (let tries = 1; ; tries++) {
    const { metadata, condition } = stateIn(await list({ prefix: path, limit: 1, signal, timeoutMs }), path);
    const isOurs = options.ifMatch === undefined || (options.ifMatch === "*" && condition.ifMatch !== undefined);
    const { type = metadata.type, description = metadata.description, ifMatch } = options;
    const { expiresAt = metadata.expiresAt, custom = metadata.custom } = options;
    const required = isOurs ? condition : { ifMatch, ifAbsent: false };
    try {
      return await put({
        ...options,
        type,
        description,
        expiresAt,
        custom,
        ifMatch: undefined,
        ifAbsent: undefined,
        ...required,
      });
    } catch (error) {
      if (!isOurs || tries === maxTries || !isConflict(error)) throw error;
      await sleep(Math.random() * 2 * tries); // writers in step would collide again
    }
  }
}

type State = { readonly metadata: Metadata; readonly condition: Pick<PutOptions, "ifMatch" | "ifAbsent"> };

/** A path sorts before all that begin with it. The server refuses to replace a damaged secret, whatever the condition. */
function stateIn({ entries, damaged = [] }: SecretList, path: string): State {
  const canonical = path.normalize("NFC");
  const found = entries.find((entry) => entry.path === canonical);
  if (found !== undefined) return { metadata: found.metadata, condition: { ifMatch: found.etag } };
  return { metadata: {}, condition: damaged.includes(canonical) ? {} : { ifAbsent: true } };
}

function isConflict(error: unknown): boolean {
  return error instanceof StrongroomError && error.code === "PRECONDITION_FAILED";
}
