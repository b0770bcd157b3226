/**
 * Schemas of request bodies, and of the operations of a batch, as data: the key worker's validators are compiled from them
 * (npm run contract), and the OpenAPI document publishes them. Imports nothing, so that both may import it.
 */

export const secretTypes = ["oauth-token", "api-key", "password", "certificate", "other"] as const;
export const maxPassphraseBytes = 1024;
export const maxLabelBytes = 64;
export const mostKeys = 15;
export const maxDescriptionBytes = 4096;
export const maxVersion = 999_999_999_999_999;
export const maxPathBytes = 1024;
export const maxOperations = 1000;

/** The kinds of a batch's operations: the field of that name has the path. */
export const operationKinds = ["get", "put", "delete", "move", "copy"] as const;
export type OperationKind = (typeof operationKinds)[number];

/**
 * The keyword `text`, in place of `type: "string"`: a well-formed string with a limit in UTF-8 bytes, or one of a few.
 * JSON Schema counts characters and needs a string; the key worker has bytes and never makes one.
 */
export type TextRule = { readonly min: number; readonly max: number; readonly oneOf?: readonly string[] };

/** JSON Schema, except for `text`. The largest value is a setting. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: data, with one parameter
export function bodySchemas(maxValueBytes: number) {
  const passphrase = {
    text: { min: 1, max: maxPassphraseBytes },
    description: "The vault's master passphrase.",
    examples: ["seven words that no one else would guess"],
  };
  const opener = { ...passphrase, description: "The vault's passphrase, or the text of one of its keys." };
  const newPassphrase = {
    ...passphrase,
    description: "The passphrase from now on.",
    examples: ["seven other words that no one would guess"],
  };
  const label = {
    text: { min: 1, max: maxLabelBytes },
    description: "Name of the key, for people: unique, without control characters and outer white space.",
    examples: ["recovery"],
  };
  const keys = {
    type: "array",
    maxItems: mostKeys,
    items: { text: { min: 1, max: maxPassphraseBytes } },
    description: "The texts of the keys that open the vault from now on, too; all others open nothing any more.",
    examples: [["SRK-00000-00001-00002-00003-00004-00005-00006-00007-00008-00009-0000A-0000B-0000C"]],
  };
  const force = {
    type: "boolean",
    default: false,
    description: "Replace an existing vault with a new, empty one; the old one is kept whole beside it.",
  };
  const value = {
    text: { min: 0, max: maxValueBytes },
    description: "The secret value.",
    examples: ["s3cr3t"],
  };
  const type = {
    text: { min: 0, max: 64, oneOf: secretTypes },
    description: "What kind of secret it is.",
    examples: ["password"],
  };
  const description = {
    text: { min: 0, max: maxDescriptionBytes },
    description: "What it is for, in plain words.",
    examples: ["the application's database"],
  };
  const version = {
    type: "integer",
    minimum: 1,
    maximum: maxVersion,
    description: "The number of a version that is kept.",
    examples: [3],
  };
  const path = (description: string, example: string) => ({
    text: { min: 1, max: maxPathBytes },
    description: `${description}, not percent-encoded.`,
    examples: [example],
  });
  const to = path("The path that it gets", "web/db/password");
  const conditions = {
    ifMatch: {
      text: { min: 1, max: 64 },
      description: "Tag without quotes that the secret at the first path must have, or `*`: it must exist.",
      examples: ["n0O6NdgaeP0QMXWP"],
    },
    ifNoneMatch: {
      text: { min: 1, max: 1, oneOf: ["*"] },
      description: "There must be no secret at the path, or at the target of a move or copy.",
      examples: ["*"],
    },
  };
  return {
    init: { type: "object", properties: { passphrase, force }, required: ["passphrase"] },
    unlock: { type: "object", properties: { passphrase: opener }, required: ["passphrase"] },
    changePassphrase: {
      type: "object",
      properties: { passphrase: opener, newPassphrase },
      required: ["passphrase", "newPassphrase"],
    },
    rotate: { type: "object", properties: { passphrase, keys }, required: ["passphrase", "keys"] },
    createKey: { type: "object", properties: { passphrase: opener, label }, required: ["passphrase", "label"] },
    put: { type: "object", properties: { value, type, description }, required: ["value"] },
    undo: { type: "object", properties: { version }, required: ["version"] },
    batchGet: {
      type: "object",
      properties: { get: path("Path of the secret to read", "app/db/user"), ...conditions },
      required: ["get"],
    },
    batchPut: {
      type: "object",
      properties: {
        put: path("Path to store the secret at", "app/db/password"),
        value,
        type,
        description,
        ...conditions,
      },
      required: ["put", "value"],
    },
    batchDelete: {
      type: "object",
      properties: { delete: path("Path of the secret to delete", "app/db/password"), ...conditions },
      required: ["delete"],
    },
    batchMove: {
      type: "object",
      properties: { move: path("Path of the secret to move", "app/db/password"), to, ...conditions },
      required: ["move", "to"],
    },
    batchCopy: {
      type: "object",
      properties: { copy: path("Path of the secret to copy", "app/db/password"), to, ...conditions },
      required: ["copy", "to"],
    },
  } as const;
}
