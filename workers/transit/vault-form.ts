/**
 * Transit as Vault's clients know it: the names of their fields, with numbers and truth values that may be strings, and the
 * forms of results. What a request asks for and this program does not do is refused, never ignored.
 */
import { createHash, createPublicKey } from "node:crypto";
import { FoundFields, type JsonValue, type ListElement } from "../json/json-reader.js";
import { JsonText, writeString } from "../json/json-string.js";
import { allocate, concat, concatScratch, decodeText, randomize, takeOver, utf8, wipe } from "../memory.js";

import type { Bytes, TransitUse, VaultForm } from "../protocol.js";
import { type Members, memberRefusal, perInput, transitMemberNames, vaultMembers } from "../vault-members.js";
import { toBase64 } from "./base64.js";
import { type FieldLabels, Fields, Invalid, type ParsedBody, parseBody } from "./body.js";
import type { KeyInfo, OpenedKey } from "./key-format.js";
import { isRsa, type KeyType, keyTypes, symmetricPart } from "./key-types.js";
import { parsePrivatePart } from "./private-keys.js";
import type { ResponseWriter } from "./response-writer.js";

/** Our fields, by Vault's names; of several names of one field the last one counts. */
const vaultNames = {
  plaintext: "plaintext",
  ciphertext: "ciphertext",
  associated_data: "aad",
  input: "input",
  signature: "signature",
  hmac: "hmac",
  prehashed: "prehashed",
  algorithm: "hash",
  hash_algorithm: "hash",
  marshaling_algorithm: "marshaling",
  signature_algorithm: "signatureAlgorithm",
  bits: "bits",
  bytes: "bytes",
  format: "format",
  type: "type",
  exportable: "exportable",
  min_decryption_version: "minDecryptionVersion",
  deletion_allowed: "deletionAllowed",
  key_version: "keyVersion",
  salt_length: "saltLength",
} as const;

const labels: FieldLabels = {
  names: Object.fromEntries(Object.entries(vaultNames).map(([theirs, ours]) => [ours, theirs])),
  missing: {
    plaintext: "missing plaintext to encrypt",
    ciphertext: "missing ciphertext to decrypt",
    input: "missing input",
  },
};

/** A salt as long as the digest, or of a length that the server chooses. */
const usualSalts = ["auto", "hash", "-1"];

/** Fields of a batch that count for each of its inputs. */
const ofWholeBatch = ["hash", "marshaling", "signatureAlgorithm", "prehashed", "keyVersion", "saltLength"];

/** Fields in which an empty text is a value, and not the default. */
const mayBeEmpty: ReadonlySet<string> = new Set(["plaintext", "input"]);

const [batchField, statusField, referenceField] = ["batch_input", "partial_failure_response_code", "reference"];
const vaultEntries = Object.entries(vaultNames);

/** @throws Invalid */
export function parseVaultBody(body: Uint8Array): ParsedBody {
  const isNull = decodeText(body.subarray(0, 5)).trim() === "null";
  return parseBody(isNull ? body.subarray(0, 0) : body, transitMemberNames, batchField);
}

/** The operation that a body is for. */
export type TransitOperation =
  | TransitUse
  | "createTransitKey"
  | "rotateTransitKey"
  | "configureTransitKey"
  | "random"
  | "hash";

function membersFor(operation: TransitOperation): Members {
  if (operation === "unwrap") throw new Error("the port for Vault's clients does not unwrap");
  return vaultMembers[operation === "datakey" ? "dataKey" : operation];
}

/** Returns the fields of a body, or of an input of a batch with those of the whole batch. @throws Invalid */
export function vaultFields(
  input: ListElement,
  maxBytes: number,
  { given }: VaultForm,
  operation: TransitOperation,
  batch?: FoundFields,
): Fields {
  const members = membersFor(operation);
  const fields = ourFields(input, members);
  if (batch !== undefined && countsForAll(operation)) {
    for (const [name, value] of ourFields(batch, members)) {
      if (ofWholeBatch.includes(name) && !fields.has(name)) fields.set(name, value);
    }
  }
  for (const [name, text] of Object.entries(given)) fields.set(name, new JsonText(utf8(text), true));
  if (isNothing(fields.get("keyVersion"), ["0"])) fields.delete("keyVersion"); // the newest
  if (isNothing(fields.get("saltLength"), usualSalts)) fields.delete("saltLength");
  return new Fields(fields, maxBytes, labels);
}

/** Whether members of a body count for each input of its batch. */
function countsForAll(operation: TransitOperation): boolean {
  return operation === "sign" || operation === "hmac" || operation === "verify";
}

/** Checks what a body has next to a batch. @throws Invalid */
export function checkBesideBatch(body: FoundFields, use: TransitUse): void {
  checkMembers(body, membersFor(use));
  const wanted = readable(body.get(statusField));
  if (wanted !== null && wanted !== "" && !(Number(wanted) >= 200 && Number(wanted) <= 599))
    throw new Invalid(`${statusField} must be a status from 200 to 599`);
  if (countsForAll(use)) return;
  for (const name of perInput) {
    if (isNothing(body.get(name), ["0"])) continue;
    throw new Invalid(`${name} counts for one input: give it with each of ${batchField}`);
  }
}

/** @throws Invalid */
function checkMembers(input: FoundFields, members: Members): void {
  for (const name of input.names()) {
    const problem = memberRefusal(members, name, readable(input.get(name)));
    if (problem !== null) throw new Invalid(problem);
  }
}

/** Returns a value for a comparison; of containers and long texts only that there is something. */
function readable(value: JsonValue | undefined): unknown {
  if (value instanceof JsonText) return value.bytes.length < 64 ? value.toString() : "a long text";
  return typeof value === "string" ? [value] : (value ?? null);
}

function ourFields(input: ListElement, members: Members): Map<string, JsonValue> {
  const fields = new Map<string, JsonValue>();
  if (input === null) return fields;
  if (!(input instanceof FoundFields))
    throw new Invalid("an input must be a JSON object", "failed to parse JSON input");
  checkMembers(input, members);
  for (const [theirs, ours] of vaultEntries) {
    const value = input.has(theirs) ? input.get(theirs) : null;
    if (value === undefined || value === null) continue;
    if (value instanceof JsonText && value.bytes.length === 0 && !mayBeEmpty.has(ours)) continue;
    fields.set(ours, value);
  }
  return fields;
}

function isNothing(value: JsonValue | undefined, neutral: readonly string[]): boolean {
  if (value === undefined || value === null || value === "object") return value !== "object";
  const text = value instanceof JsonText && value.bytes.length < 16 ? value.toString() : value;
  return text === "" || neutral.includes(String(text));
}

/** Returns the version that an input of a batch names; null: the newest, or something else, which is refused when it is used. */
export function versionNamed(input: ListElement): number | null {
  const named = input instanceof FoundFields ? input.get("key_version") : undefined;
  const number = named instanceof JsonText && named.bytes.length < 10 ? Number(named.toString()) : named;
  return typeof number === "number" && Number.isInteger(number) && number > 0 ? number : null;
}

/** Returns the status of a batch: that of Vault is an error where an input failed, unless the client wants another. */
export function batchStatus(body: FoundFields, use: TransitUse, failed: number, count: number): number {
  if (failed === 0 || (use !== "encrypt" && use !== "decrypt")) return 200;
  return failed < count ? Number(readable(body.get(statusField)) ?? 0) || 400 : 400;
}

/** Adds to the members of an input's result the reference that the client gave. */
export function writeReference(out: ResponseWriter, input: ListElement): void {
  const reference = input instanceof FoundFields ? input.get(referenceField) : undefined;
  out.text(',"reference":');
  if (reference instanceof JsonText) out.bytes(writeString(reference.bytes));
  else if (typeof reference === "number") out.text(`"${reference}"`);
  else out.text('""');
}

export function shownVaultKey(name: string, info: KeyInfo): object {
  const { type, versions } = info;
  const first = info.minDecryptionVersion;
  const shown = versions.map((version, i) => [i + 1, shownVersion(type, version)] as const);
  const { encryption, signature, derivesInVault } = keyTypes[type];
  const encrypts = encryption !== null;
  return {
    allow_plaintext_backup: false,
    auto_rotate_period: 0,
    deletion_allowed: info.deletionAllowed,
    derived: false,
    exportable: info.exportable,
    imported_key: false,
    ...(type !== "hmac" && { keys: Object.fromEntries(shown.filter(([number]) => number >= first)) }),
    latest_version: versions.length,
    min_available_version: 0,
    min_decryption_version: first,
    min_encryption_version: 0,
    name,
    supports_decryption: encrypts,
    supports_derivation: derivesInVault,
    supports_encryption: encrypts,
    supports_signing: signature !== null,
    type,
  };
}

function shownVersion(type: KeyType, { createdAt, publicKey }: KeyInfo["versions"][number]): object | number {
  if (publicKey === undefined) return Math.floor(Date.parse(createdAt) / 1000);
  const name = keyTypes[type].signature === "ecdsa" ? "P-256" : type;
  return { certificate_chain: "", creation_time: createdAt, name, public_key: publicForm(type, publicKey) };
}

/** Returns the 32 bytes of an Ed25519 key, in base64; another key as PEM. */
function publicForm(type: KeyType, pem: string): string {
  if (keyTypes[type].signature !== "ed25519") return isRsa(type) ? pem : pem.trim();
  return createPublicKey(pem).export({ type: "spki", format: "der" }).subarray(-32).toString("base64");
}

const exportTypes = ["encryption-key", "signing-key", "hmac-key", "public-key"] as const;
type ExportType = (typeof exportTypes)[number];

function isExportType(text: string): text is ExportType {
  return exportTypes.some((type) => type === text);
}

/** Returns the JSON of an export; `given.version`: a number, "latest", or "" for all. @throws Invalid */
export function exported({ name, given }: VaultForm, { info, privateParts }: OpenedKey): Bytes {
  const { exportType: kind = "", version = "" } = given;
  if (!isExportType(kind)) throw new Invalid("invalid export type");
  if (!info.exportable && kind !== "public-key") throw new Invalid("private key material is not exportable");
  const [first, last] = version === "" ? [info.minDecryptionVersion, info.versions.length] : oneVersion(info, version);
  const keys = privateParts.slice(first - 1, last).flatMap((part, i) => {
    const text = kind === "public-key" ? publicExport(info, first + i) : privateExport(info.type, part, kind);
    return [`${i === 0 ? "" : ","}"${first + i}":"`, text, '"'];
  });
  return concat(['{"keys":{', ...keys, `},"name":${JSON.stringify(name)},"type":"${info.type}"}`]);
}

/** @throws Invalid */
function oneVersion({ versions, minDecryptionVersion }: KeyInfo, text: string): readonly [number, number] {
  const version = text === "latest" ? versions.length : Number(text.replace(/^v/, ""));
  if (version < minDecryptionVersion) throw new Invalid("version for export is below minimum decryption version");
  if (version > versions.length) throw new Invalid("version does not exist or cannot be found");
  return [version, version];
}

function publicExport({ type, versions }: KeyInfo, version: number): string {
  const pem = versions[version - 1]?.publicKey;
  if (pem === undefined) throw new Invalid(`unknown key type ${type} for export type public-key`);
  return JSON.stringify(publicForm(type, pem)).slice(1, -1);
}

/** The text of a JSON string, in scratch memory. @throws Invalid */
function privateExport(type: KeyType, part: Uint8Array, kind: ExportType): Uint8Array {
  if (kind === "hmac-key") return toBase64(macKeyBytes(type, part));
  const symmetric = symmetricPart(type, part);
  if (symmetric !== null && kind === "encryption-key") return toBase64(symmetric);
  if (kind === "encryption-key" && !isRsa(type)) throw new Invalid("encryption not supported for the key");
  if (keyTypes[type].signature === null) throw new Invalid("signing not supported for the key");
  const key = parsePrivatePart(type, part);
  if (keyTypes[type].signature === "ed25519") {
    const publicKey = createPublicKey(key).export({ type: "spki", format: "der" }).subarray(-32);
    return toBase64(concatScratch(part, publicKey));
  }
  const der = takeOver(key.export({ format: "der", type: isRsa(type) ? "pkcs1" : "sec1" }));
  try {
    return pemText(isRsa(type) ? "RSA PRIVATE KEY" : "EC PRIVATE KEY", der);
  } finally {
    wipe(der);
  }
}

function macKeyBytes(type: KeyType, part: Uint8Array): Uint8Array {
  const { macKeyAt } = keyTypes[type];
  if (macKeyAt !== null) return part.subarray(macKeyAt);
  throw new Invalid(`a key of type ${type} has no key for MACs`);
}

const pemLine = 64;

/** PEM as the text of a JSON string: its line ends are escaped. */
function pemText(label: string, der: Uint8Array): Uint8Array {
  const base64 = toBase64(der);
  const lines: (Uint8Array | string)[] = [];
  for (let at = 0; at < base64.length; at += pemLine) lines.push(base64.subarray(at, at + pemLine), "\\n");
  return concatScratch(`-----BEGIN ${label}-----\\n`, ...lines, `-----END ${label}-----`);
}

const hex = utf8("0123456789abcdef");

function encoded(bytes: Uint8Array, fields: Fields, absent: "hex" | "base64"): Uint8Array {
  if (fields.choice("format", ["hex", "base64"], absent) === "base64") return toBase64(bytes);
  const text = concatScratch(bytes, bytes);
  for (const [i, byte] of bytes.entries()) {
    text[2 * i] = hex[byte >> 4] ?? 0;
    text[2 * i + 1] = hex[byte & 15] ?? 0;
  }
  return text;
}

/** @throws Invalid */
export function vaultRandom(fields: Fields): Bytes {
  const bytes = randomize(allocate(fields.whole("bytes", 1, 65_536, 32)));
  try {
    return concat(['{"random_bytes":"', encoded(bytes, fields, "base64"), '"}']);
  } finally {
    wipe(bytes);
  }
}

/** Hashes that need no key. @throws Invalid */
export function vaultHash(fields: Fields): Bytes {
  const names = [
    "sha2-224",
    "sha2-256",
    "sha2-384",
    "sha2-512",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
  ] as const;
  const name = fields.choice("hash", names, "sha2-256");
  const digest = takeOver(createHash(name.replace("sha2-", "sha")).update(fields.bytes("input")).digest());
  try {
    return concat(['{"sum":"', encoded(digest, fields, "hex"), '"}']);
  } finally {
    wipe(digest);
  }
}
