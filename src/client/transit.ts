/** Transit keys: options of their methods, and how inputs and results travel. */
import type { TransitInput, TransitKeyRequest, TransitResult } from "./api-types.js";
import { StrongroomError } from "./errors.js";
import type { Field } from "./json-body.js";
import type { CallOptions, Text } from "./options.js";
import { encoded } from "./request.js";
import type { Responses } from "./shapes.js";

export type TransitKeyType = NonNullable<TransitKeyRequest["type"]>;

/** The shapes of the results of each use. */
export const resultShapes = {
  encrypt: "CiphertextResult",
  decrypt: "PlaintextResult",
  unwrap: "FileKeyResult",
  rewrap: "CiphertextResult",
  sign: "SignatureResult",
  verify: "ValidityResult",
  hmac: "HmacResult",
} as const satisfies Readonly<Record<string, keyof Responses>>;

export type TransitUse = keyof typeof resultShapes;

export type CreateTransitKeyOptions = CallOptions & {
  /** Type of the key, which decides its uses. Default: aes256-gcm96. */
  readonly type?: TransitKeyType | undefined;
  /** Whether the root token may export the private part. Default: false. */
  readonly exportable?: boolean | undefined;
  /** An existing key to import: PKCS #8 in DER of an asymmetric key, otherwise its bytes. Default: a new, random key. */
  readonly key?: Uint8Array | undefined;
};

export type ConfigureTransitKeyOptions = CallOptions & {
  /** The lowest version that decrypts and verifies. Default: the current one. */
  readonly minDecryptionVersion?: number | undefined;
  /** Whether the key can be deleted. Default: as it is. */
  readonly deletionAllowed?: boolean | undefined;
};

export type EncryptOptions = CallOptions & {
  /** Data that is authenticated but not encrypted; decrypting needs the same. */
  readonly aad?: Text | undefined;
};

export type SignOptions = CallOptions &
  Undefinable<Pick<TransitInput, "hash" | "marshaling" | "signatureAlgorithm" | "prehashed">>;

type Undefinable<T> = { readonly [N in keyof T]?: T[N] | undefined };

/** One input of a batch. Bytes and texts are sent in base64. */
export type TransitBatchInput = Undefinable<Omit<TransitInput, BinaryField>> & {
  readonly [N in BinaryField]?: Text | undefined;
};

const binaryFields = ["plaintext", "input", "aad", "share", "wrapped"] as const;
type BinaryField = (typeof binaryFields)[number];

/** The URL path of a key, or of an operation with it. @throws StrongroomError BAD_REQUEST */
export function transitUrl(resource: string, name: string, action = ""): string {
  if (name === "") throw new StrongroomError("BAD_REQUEST", "the name of the transit key is empty");
  return `/v1/transit/${resource}/${encoded(name)}${action}`;
}

/** Text as UTF-8, or bytes, in base64. */
function base64(data: Text): string {
  return Buffer.from(typeof data === "string" ? new TextEncoder().encode(data) : data).toString("base64");
}

export function optionalBase64(data: Text | undefined): string | undefined {
  return data === undefined ? undefined : base64(data);
}

export function inputFields(input: TransitBatchInput): Readonly<Record<string, Field>> {
  return { ...input, ...Object.fromEntries(binaryFields.map((name) => [name, optionalBase64(input[name])])) };
}

/** Returns a field that the server's result must have. @throws StrongroomError PROTOCOL */
export function resultField<N extends keyof TransitResult>(
  result: TransitResult,
  name: N,
): NonNullable<TransitResult[N]> {
  const value = result[name];
  if (value !== undefined) return value as NonNullable<TransitResult[N]>;
  throw new StrongroomError("PROTOCOL", `the server's response has no ${name}`);
}

/** Decodes base64 into memory of its own, which the caller can wipe. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(new ArrayBuffer(Buffer.byteLength(text, "base64")));
  return bytes.subarray(0, Buffer.from(bytes.buffer).write(text, "base64"));
}
