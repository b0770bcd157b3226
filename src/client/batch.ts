/** Batches: their operations, how these are sent, and reading many secrets in as few requests as possible. */
import type { BatchRefusal, BatchResults, Deleted, Secret as SecretResponse, Stored } from "./api-types.js";
import { errorOfCode, StrongroomError } from "./errors.js";
import { type Bytes, type Field, jsonListObject } from "./json-body.js";
import type { Custom, SecretType, Text } from "./options.js";
import { formatTime } from "./request.js";
import { Secret } from "./secret.js";
import { shapeProblem } from "./shape-check.js";

/** The secret that the operation names first must still have this `etag`. `*`: it must exist. */
type IfMatch = { readonly ifMatch?: string | undefined };
/** There must be no secret at the path that the operation writes. */
type IfAbsent = { readonly ifAbsent?: boolean | undefined };

export type GetOperation = IfMatch & { readonly get: string };

/** Stores only the given metadata. */
export type PutOperation = IfMatch &
  IfAbsent & {
    readonly put: string;
    readonly value: Text;
    /** The value is base64 of a binary value. */
    readonly encoding?: "base64" | undefined;
    readonly type?: SecretType | undefined;
    readonly description?: string | undefined;
    /** When the value expires, as a reminder. */
    readonly expiresAt?: Date | string | undefined;
    /** Texts for programs. */
    readonly custom?: Custom | undefined;
  };

export type DeleteOperation = IfMatch & { readonly delete: string };

export type TrashOperation = IfMatch & { readonly trash: string };

/** The secret keeps its times, metadata and versions. */
export type MoveOperation = IfMatch &
  IfAbsent & {
    readonly move: string;
    readonly to: string;
    /** A secret that is replaced goes to the trash. Default: it is deleted. */
    readonly trashReplaced?: boolean | undefined;
  };

/** Creates a new secret with the current value and metadata. */
export type CopyOperation = IfMatch & IfAbsent & { readonly copy: string; readonly to: string };

export type BatchOperation =
  | GetOperation
  | PutOperation
  | DeleteOperation
  | TrashOperation
  | MoveOperation
  | CopyOperation;

/** For a get, the secret, or in a batch of gets why it was refused; for a delete or trash, Deleted; for the others, Stored. */
export type BatchResult = Secret | Stored | Deleted | BatchRefusal;

/** The server's limit of operations in a batch. */
export const maxOperations = 1000;

/** Returns the body of a batch, for the caller to wipe. @throws StrongroomError BAD_REQUEST */
export function batchBody(operations: readonly BatchOperation[]): Bytes {
  return jsonListObject("operations", operations.map(operationFields));
}

function operationFields(operation: BatchOperation): Readonly<Record<string, Field>> {
  const { ifAbsent, expiresAt, ...fields } = { ifAbsent: undefined, expiresAt: undefined, ...operation };
  return { ...fields, expiresAt: formatTime(expiresAt), ifNoneMatch: ifAbsent ? "*" : undefined };
}

/** The results of these operations, as the server sent them. @throws StrongroomError PROTOCOL when they are not theirs */
export function batchResults(operations: readonly BatchOperation[], results: BatchResults["results"]): BatchResult[] {
  if (results.length !== operations.length) throw unexpectedResults();
  return results.map((result) => (isSecret(result) ? new Secret(result) : result));
}

function isSecret(result: BatchResults["results"][number]): result is SecretResponse {
  return shapeProblem("Secret", result) === null;
}

type SendBatch = (operations: readonly GetOperation[]) => Promise<readonly BatchResult[]>;

/** A secret, or why it cannot be read. */
export type Read = Secret | BatchRefusal;

/**
 * Yields a result for each path, in order, one array for each request. The server reads a batch up to its byte limit
 * and refuses the rest, which then begins the next request. @throws StrongroomError
 */
export async function* readMany(
  sendBatch: SendBatch,
  paths: readonly string[],
): AsyncGenerator<readonly Read[], void, void> {
  for (let done = 0; done < paths.length; ) {
    const wanted = paths.slice(done, done + maxOperations);
    const results = (await sendBatch(wanted.map((get) => ({ get })))).map(requireRead);
    const end = results.findIndex((result, at) => at > 0 && isRefused(result, "BAD_REQUEST"));
    const read = end === -1 ? results : results.slice(0, end);
    yield read;
    done += read.length;
  }
}

/** Returns undefined for a missing secret. @throws StrongroomError for an unreadable secret */
export function resultSecret(result: Read): Secret | undefined {
  if (result instanceof Secret) return result;
  if (result.code === "NOT_FOUND") return undefined;
  throw errorOfCode(result.code, result.error);
}

function isRefused(result: Read, code: BatchRefusal["code"]): boolean {
  return !(result instanceof Secret) && result.code === code;
}

function requireRead(result: BatchResult): Read {
  if (result instanceof Secret || "error" in result) return result;
  throw unexpectedResults();
}

export function unexpectedResults(): StrongroomError {
  return new StrongroomError(
    "PROTOCOL",
    "the response does not match the request: the server may have another version",
  );
}
