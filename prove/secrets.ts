/** Secrets of a home as the independent decoder sees them, and as the server returns them. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { FormatError, type Header, isSigned, type Keys, type OpenedSecret, openBlob, parseHeader } from "./format.js";
import type { Check } from "./report.js";
import { type Server, target } from "./server.js";

/** How many secrets are opened. */
const sampleSize = 20;

/** Returns the directory of the current vault. */
export function currentVault(home: string): string {
  return join(home, "vault", readFileSync(join(home, "vault", "current"), "latin1").trim());
}

export function headerFile(home: string): string {
  return join(currentVault(home), "header.json");
}

/** @throws FormatError */
export function readHeader(file: string): Header {
  return parseHeader(readFileSync(file));
}

type Sealed = { readonly path: string; readonly file: string };

function sealedFiles(directory: string, prefix: string): Sealed[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const file = join(directory, entry.name);
    if (entry.name.startsWith(".")) return [];
    if (entry.isDirectory()) return sealedFiles(file, `${prefix}${decodeURIComponent(entry.name)}/`);
    if (!entry.name.endsWith(".sealed")) return [];
    return [{ path: prefix + decodeURIComponent(entry.name.slice(0, -".sealed".length)), file }];
  });
}

function sampleOf<T>(all: readonly T[]): T[] {
  const rest = [...all];
  return Array.from({ length: Math.min(sampleSize, all.length) }, () => {
    return rest.splice(Math.floor(Math.random() * rest.length), 1);
  }).flat();
}

const row = (what: string, expected: string | number, found: string | number): Check => {
  return { step: "decoder", state: null, what, expected, found, holds: expected === found };
};

/** Checks that only the server has changed the header: by its MAC, and by the server's own list of keys. */
export async function checkHeader(header: Header, keys: Keys | null, server: Server | null): Promise<Check[]> {
  const checks: Check[] = [];
  if (keys !== null) {
    const found = isSigned(header, keys.masterKey) ? "matches" : "does not match: a slot was added, changed or dropped";
    checks.push(row("MAC over all slots of the header", "matches", found));
  }
  const listed = await server?.send("GET", "/v1/keys");
  if (listed?.status !== 200 || !Array.isArray(listed.json["keys"])) return checks;
  const known = (listed.json["keys"] as { readonly id: string }[]).map(({ id }) => id).sort();
  const present = header.slots.map(({ id }) => id ?? "passphrase").sort();
  return [...checks, row("slots in the header, as the server lists its keys", known.join(", "), present.join(", "))];
}

type Compared = { readonly checks: Check[]; readonly values: readonly Buffer[] };

/** Opens random secrets without the server, and compares them with its responses while it is unlocked. */
export async function checkSecrets(home: string, header: Header, keys: Keys, server: Server | null): Promise<Compared> {
  const sample = sampleOf(sealedFiles(join(currentVault(home), "secrets"), ""));
  const isUnlocked = server !== null && !(await server.isLocked());
  const results: Comparison[] = [];
  for (const sealed of sample) {
    const result = await compare(header, keys, sealed, isUnlocked ? server : null);
    if (result !== null) results.push(result); // otherwise deleted or moved since it was listed
  }
  const opened = results.flatMap(({ secret }) => secret ?? []);
  const equal = results.filter(({ isEqual }) => isEqual).length;
  const checks = [row("secrets opened from the documented format", results.length, opened.length)];
  if (isUnlocked) checks.push(row("of these, equal to what the server returns", results.length, equal));
  return { checks, values: opened.map(({ value }) => value) };
}

type Comparison = { readonly secret: OpenedSecret | null; readonly isEqual: boolean };

/** Reads the file again when a change came between it and the response; null when the secret is gone. */
async function compare(header: Header, keys: Keys, { path, file }: Sealed, server: Server | null) {
  let result: Comparison = { secret: null, isEqual: false };
  for (let attempt = 0; attempt < 5; attempt++) {
    const secret = openFile(header, keys, path, file);
    if (secret === undefined) return null;
    if (server === null || secret === null) return { secret, isEqual: false };
    const { status, json } = await server.send("GET", target("/v1/secrets", path));
    result = { secret, isEqual: status === 200 && isSame(secret, json) };
    if (result.isEqual) break;
  }
  return result;
}

/** Undefined: there is no such file. Null: it cannot be opened. */
function openFile(header: Header, keys: Keys, path: string, file: string): OpenedSecret | null | undefined {
  try {
    return openBlob(header, keys, path, readFileSync(file));
  } catch (error) {
    return error instanceof FormatError ? null : undefined;
  }
}

function isSame({ value, metadata, etag }: OpenedSecret, json: Readonly<Record<string, unknown>>): boolean {
  const text: unknown = JSON.parse(value.toString("utf8"));
  const members = ["metadata", "createdAt", "updatedAt"];
  const isSameMetadata = members.every((name) => JSON.stringify(metadata[name]) === JSON.stringify(json[name]));
  return text === json["value"] && etag === json["etag"] && isSameMetadata;
}
