/** Limits of request bodies, in bytes of UTF-8 where they limit a text. A test compares them with openapi.yaml. */

export const maxPassphraseBytes = 1024;
export const maxLabelBytes = 64;
export const mostKeys = 15;
export const maxDescriptionBytes = 4096;
/** Limits of custom metadata: texts, bytes of a name, and bytes of all names and texts together. */
export const mostCustom = 64;
export const maxCustomNameBytes = 128;
export const maxCustomBytes = 16_384;
export const maxVersion = 999_999_999_999_999;
export const maxPathBytes = 1024;
export const maxOperations = 1000;

/** The kinds of a batch's operations: the field of that name has the path. */
export const operationKinds = ["get", "put", "delete", "trash", "move", "copy"] as const;
export type OperationKind = (typeof operationKinds)[number];
