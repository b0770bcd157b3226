/** Private transit keys as the independent decoder reads them (docs/on-disk.md), in all forms in which a program holds them. */
import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { bech32 } from "@scure/base";
import { FormatError, type Header, type Keys, openBlob } from "./format.js";
import type { Check } from "./report.js";
import type { Secret } from "./search.js";
import { type Server, target } from "./server.js";
import type { Source } from "./source.js";

/** Limit of versions searched for per key type: the newest versions of the first names. */
const mostOfType = 20;

/** Length of a piece, in bytes. */
const pieceBytes = 8;
/** Only pieces of RSA keys' long numbers that start at multiples of this are searched for. */
const rsaPieceStep = 8;

/** `part`: the private part of one version as it is sealed. */
export type PrivateKey = {
  readonly name: string;
  readonly version: number;
  readonly type: string;
  readonly part: Buffer;
};

export type TransitKeys = {
  readonly keys: readonly PrivateKey[];
  readonly checks: readonly Check[];
  /** Private parts that are not among them. */
  readonly left: number;
};

const row = (what: string, expected: number, found: number): Check => {
  return { step: "decoder", state: null, what, expected, found, holds: expected === found };
};

/** Opens all transit keys of a vault, and compares their public parts with the server's while it is unlocked. */
export async function openTransitKeys(source: Source, header: Header, keys: Keys, server: Server | null) {
  const sealed = (await source.list("keys")).sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
  const isUnlocked = server !== null && !(await server.isLocked());
  const found: PrivateKey[] = [];
  let [present, opened, equal] = [0, 0, 0];
  for (const { path, read } of sealed) {
    const file = await read();
    if (file === null) continue; // deleted since it was listed
    present++;
    const versions = openVersions(header, keys, path, file);
    if (versions === null) continue;
    opened++;
    found.push(...versions);
    if (isUnlocked && (await isAsServerSays(server, path, versions))) equal++;
  }
  const checks = present === 0 ? [] : [row("transit keys opened from the documented format", present, opened)];
  if (isUnlocked && present > 0)
    checks.push(row("of these, with the public parts that the server returns", present, equal));
  const taken = [...new Set(found.map(({ type }) => type))].flatMap((type) =>
    found.filter((key) => key.type === type).slice(0, mostOfType),
  );
  return { keys: taken, checks, left: found.length - taken.length } satisfies TransitKeys;
}

/** Newest first; null when it cannot be opened. */
function openVersions(header: Header, keys: Keys, path: string, file: Buffer): PrivateKey[] | null {
  try {
    const opened = openBlob(header, keys, path, file, "key");
    if (opened === null) return null;
    const { metadata, value } = opened;
    const type = String(metadata["type"]);
    const parts: PrivateKey[] = [];
    for (let at = 0; at < value.length; ) {
      const end = at + 4 + value.readUInt32BE(at);
      parts.push({ name: path, version: parts.length + 1, type, part: value.subarray(at + 4, end) });
      at = end;
    }
    return parts.reverse();
  } catch (error) {
    if (error instanceof FormatError || error instanceof RangeError) return null;
    throw error;
  }
}

async function isAsServerSays(server: Server, path: string, versions: readonly PrivateKey[]): Promise<boolean> {
  const { status, json } = await server.send("GET", target("/v1/transit/keys", path));
  if (status !== 200) return false;
  const shown = json["versions"] as Readonly<Record<string, { readonly publicKey?: string }>>;
  return versions.every((key) => {
    const privateKey = importPrivateKey(key);
    return (
      json["type"] === key.type && shown[key.version]?.publicKey === (privateKey ? publicText(privateKey) : undefined)
    );
  });
}

/** The public key as the server shows it: a recipient of age, else PEM. */
function publicText(privateKey: KeyObject): string {
  const publicKey = createPublicKey(privateKey);
  if (publicKey.asymmetricKeyType !== "x25519") return publicKey.export({ type: "spki", format: "pem" }).toString();
  return bech32.encodeFromBytes("age", publicKey.export({ type: "spki", format: "der" }).subarray(-32));
}

/** PKCS #8 up to the 32 private bytes, which are the last ones. */
const prefixes: Readonly<Record<string, string>> = {
  ed25519: "302e020100300506032b657004220420",
  x25519: "302e020100300506032b656e04220420",
  "ecdsa-p256": "3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420",
};

/** PKCS #8 (DER); null for a symmetric key. */
function privateKeyDer({ type, part }: PrivateKey): Buffer | null {
  const prefix = prefixes[type];
  if (prefix !== undefined) return Buffer.concat([Buffer.from(prefix, "hex"), part]);
  return type.startsWith("rsa-") ? part : null;
}

function importPrivateKey(key: PrivateKey): KeyObject | null {
  const der = privateKeyDer(key);
  return der && createPrivateKey({ key: der, format: "der", type: "pkcs8" });
}

function isAsymmetric(type: string): boolean {
  return type in prefixes || type.startsWith("rsa-");
}

/**
 * Patterns to search for: raw keys and numbers, these also in the other byte order, in which OpenSSL holds them, and of
 * asymmetric keys the DER and each line of the PEM that holds a private part. The patterns of a type share a name.
 */
export function transitSecrets(keys: readonly PrivateKey[]): Secret[] {
  return keys.flatMap((key) => {
    const name = `private ${key.type} keys`;
    const numbers = privateNumbers(key);
    const reversed =
      isAsymmetric(key.type) && !key.type.endsWith("25519") ? numbers.map((each) => each.toReversed()) : [];
    const pieceStep = key.type.startsWith("rsa-") ? rsaPieceStep : 1;
    const raw = [...numbers, ...reversed].map((bytes) => ({ name, bytes, isText: false, pieceBytes, pieceStep }));
    const whole = wholeForms(key).map((bytes) => ({ name, bytes, isText: false, pieceBytes: 0 }));
    return [...raw, ...whole];
  });
}

/** Whether a name of `transitSecrets` is that of asymmetric keys. */
export function isAsymmetricName(name: string): boolean {
  return isAsymmetric(name.split(" ")[1] ?? "");
}

/** The AES key and the HMAC key; the seed or scalar; or the exponent and both primes. */
function privateNumbers(key: PrivateKey): Buffer[] {
  const { type, part } = key;
  if (type === "aes256-gcm96") return [part.subarray(0, 32), part.subarray(32)];
  if (!type.startsWith("rsa-")) return [part];
  const { d = "", p = "", q = "" } = importPrivateKey(key)?.export({ format: "jwk" }) ?? {};
  return [d, p, q].map((text) => Buffer.from(text, "base64url"));
}

const pemLine = 64;
/** Bytes at the end of an RSA key's DER that are private whatever its length: the last of its primes' exponents. */
const privateTail = 256;

function wholeForms(key: PrivateKey): Buffer[] {
  const der = privateKeyDer(key);
  if (der === null) return [];
  const from = Math.max(0, der.length - (key.type.startsWith("rsa-") ? privateTail : key.part.length));
  const text = der.toString("base64").replace(/.?=*$/, "");
  const lines = Array.from({ length: Math.ceil(text.length / pemLine) }, (_, i) => ({
    at: i * pemLine,
    end: (i + 1) * pemLine,
  }));
  const telling = lines.filter(({ at, end }) => Math.min(end, text.length) - Math.max(at, (from * 4) / 3) >= 12);
  return [der, ...telling.map(({ at, end }) => Buffer.from(text.slice(at, end)))];
}
