/** Operations of a batch: their types, their form in a request, and the decoding of their results. */
import type { BatchRefusal, Deleted, Secret as SecretResponse, Stored } from "./api-types.js";
import { type Bytes, type Field, jsonListObject } from "./encode-body.js";
import type { SecretType, Text } from "./method-options.js";
import { Secret } from "./secret.js";

/** The secret that the operation names first must still have this `etag`; `*`: it must exist. */
type IfMatch = { readonly ifMatch?: string | undefined };
/** There must be no secret at the path that the operation writes. */
type IfAbsent = { readonly ifAbsent?: boolean | undefined };

export type GetOperation = IfMatch & { readonly get: string };

/** Stores only the type and description that are given. */
export type PutOperation = IfMatch &
  IfAbsent & {
    readonly put: string;
    readonly value: Text;
    readonly type?: SecretType | undefined;
    readonly description?: string | undefined;
  };

export type DeleteOperation = IfMatch & { readonly delete: string };

/** The secret keeps its times, its metadata and its versions. */
export type MoveOperation = IfMatch & IfAbsent & { readonly move: string; readonly to: string };

/** Makes a new secret of the present value and metadata. */
export type CopyOperation = IfMatch & IfAbsent & { readonly copy: string; readonly to: string };

export type BatchOperation = GetOperation | PutOperation | DeleteOperation | MoveOperation | CopyOperation;

/** Of a get, the secret, or in a batch of gets alone why it is refused; of a delete, Deleted; of all others, Stored. */
export type BatchResult = Secret | Stored | Deleted | BatchRefusal;

/** The response, as the server sends it. */
export type BatchResponse = { readonly results: readonly (SecretResponse | Stored | Deleted | BatchRefusal)[] };

/** The server's limit for the operations of a batch. */
export const maxOperations = 1000;

/** Returns the body, which the caller wipes. @throws StrongroomError BAD_REQUEST */
export function batchBody(operations: readonly BatchOperation[]): Bytes {
  return jsonListObject("operations", operations.map(fieldsOf));
}

function fieldsOf(operation: BatchOperation): Readonly<Record<string, Field>> {
  if (!("ifAbsent" in operation)) return operation;
  const { ifAbsent, ...fields } = operation;
  return { ...fields, ifNoneMatch: ifAbsent ? "*" : undefined };
}

export function resultOf(result: BatchResponse["results"][number]): BatchResult {
  return "value" in result ? new Secret(result) : result;
}
