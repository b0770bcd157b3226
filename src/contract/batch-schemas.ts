/** Schemas of a batch: its request, the operations in it, and its response. */
import { type bodySchemas, maxOperations, operationKinds } from "../../workers/body-schemas.js";
import { error } from "./error-schemas.js";
import { list, object, ok, published, type Schema, schemaNamed, text } from "./json-schema.js";

const operations: Schema = {
  ...list("What to do; an operation has one of get, put, delete, move and copy.", {
    oneOf: ["BatchGet", "BatchPut", "BatchDelete", "BatchMove", "BatchCopy"].map(schemaNamed),
    allOf: [{ oneOf: operationKinds.map((kind) => ({ required: [kind] })) }],
  }),
  maxItems: maxOperations,
};

export function batchRequests(bodies: ReturnType<typeof bodySchemas>): Schema {
  return {
    BatchRequest: object("Body of a batch. Other fields are ignored.", { operations }),
    BatchGet: { ...published(bodies.batchGet), description: "Reads a secret." },
    BatchPut: { ...published(bodies.batchPut), description: "Stores a secret." },
    BatchDelete: { ...published(bodies.batchDelete), description: "Deletes a secret permanently." },
    BatchMove: {
      ...published(bodies.batchMove),
      description: "Moves or renames a secret; its times, versions and history stay.",
    },
    BatchCopy: {
      ...published(bodies.batchCopy),
      description: "Stores the present value and metadata of a secret as a new secret at another path.",
    },
  };
}

export const batchSchemas = {
  BatchResults: object("The results of a batch.", {
    ok,
    results: list(
      "One for each operation, in order: the secret of a get, or why it is refused; of a put, move or copy what was stored; of a delete a confirmation.",
      { oneOf: ["Secret", "Stored", "Deleted", "BatchRefusal"].map(schemaNamed) },
    ),
  }),
  BatchRefusal: object("Why a get of a batch without changes is refused.", {
    code: {
      ...text("Error code, for programs.", "NOT_FOUND"),
      enum: ["BAD_REQUEST", "FORBIDDEN", "NOT_FOUND", "PRECONDITION_FAILED", "INTEGRITY"],
    },
    error,
  }),
} satisfies Readonly<Record<string, Schema>>;
