/** Reading of many secrets, in as few requests as the server's limits allow. */
import type { BatchRefusal } from "./api-types.js";
import { type BatchResult, type GetOperation, maxOperations } from "./batch-requests.js";
import { StrongroomError } from "./client-error.js";
import { Secret } from "./secret.js";

type Batch = (operations: readonly GetOperation[]) => Promise<readonly BatchResult[]>;

/** A secret, or why it cannot be read. */
export type Read = Secret | BatchRefusal;

/**
 * Yields a result for each path, in order; one array for each request. The server reads up to its limit of bytes and
 * refuses the rest of a batch: that begins the next one. @throws StrongroomError
 */
export async function* readMany(batch: Batch, paths: readonly string[]): AsyncGenerator<readonly Read[], void, void> {
  for (let done = 0; done < paths.length; ) {
    const wanted = paths.slice(done, done + maxOperations);
    const results = (await batch(wanted.map((get) => ({ get })))).map(readOf);
    if (results.length !== wanted.length) throw unfit();
    const end = results.findIndex((result, at) => at > 0 && isRefused(result, "BAD_REQUEST"));
    const read = end === -1 ? results : results.slice(0, end);
    yield read;
    done += read.length;
  }
}

/** Returns undefined for a missing secret. @throws StrongroomError for one that cannot be read */
export function secretOf(result: Read): Secret | undefined {
  if (result instanceof Secret) return result;
  if (result.code === "NOT_FOUND") return undefined;
  throw new StrongroomError(result.code, result.error);
}

function isRefused(result: Read, code: BatchRefusal["code"]): boolean {
  return !(result instanceof Secret) && result.code === code;
}

function readOf(result: BatchResult): Read {
  if (result instanceof Secret || "error" in result) return result;
  throw unfit();
}

function unfit(): StrongroomError {
  return new StrongroomError("PROTOCOL", "the server's response does not fit the request: it may be another version");
}
