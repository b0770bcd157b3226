/** Header, secrets and trash as the independent decoder sees them, and as the server returns them. */
import {
  FormatError,
  type Header,
  insideOfTrashed,
  isSigned,
  type Keys,
  type OpenedSecret,
  openBlob,
} from "./format.js";
import type { Check } from "./report.js";
import { type Json, type Response, type Server, target } from "./server.js";
import type { Sealed, Source, Space } from "./source.js";

/** How many secrets are opened. */
const sampleSize = 20;

function randomSample<T>(all: readonly T[]): T[] {
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

/** Opens random secrets without the server, and compares them with its responses while it is unlocked; then the trash. */
export async function checkSecrets(
  source: Source,
  header: Header,
  keys: Keys,
  server: Server | null,
): Promise<Compared> {
  const isUnlocked = server !== null && !(await server.isLocked());
  const results = await openSample(source, "secrets", header, keys, isUnlocked ? server : null);
  const equal = results.filter(({ isEqual }) => isEqual).length;
  const opened = openedSecrets(results);
  const checks = [row("secrets opened from the documented format", results.length, opened.length)];
  if (isUnlocked) checks.push(row("of these, equal to what the server returns", results.length, equal));
  const trash = await openSample(source, "trash", header, keys, null);
  const openedTrash = openedSecrets(trash);
  if (trash.length > 0)
    checks.push(row("deleted secrets opened from the documented format", trash.length, openedTrash.length));
  return { checks, values: [...opened, ...openedTrash].map(({ value }) => valueText(value)) };
}

/** Deleted secrets are behind the time at which they were deleted. */
function unwrapped(space: Space, { path, read }: Sealed): Sealed {
  if (space !== "trash") return { path, read };
  return { path, read: async () => insideOfTrashed(await read()) };
}

async function openSample(source: Source, space: Space, header: Header, keys: Keys, server: Server | null) {
  const results: Comparison[] = [];
  for (const sealed of randomSample(await source.list(space))) {
    const result = await compare(header, keys, unwrapped(space, sealed), server);
    if (result !== null) results.push(result); // otherwise deleted or moved since it was listed
  }
  return results;
}

function openedSecrets(results: readonly Comparison[]): OpenedSecret[] {
  return results.flatMap(({ secret }) => secret ?? []);
}

type Comparison = { readonly secret: OpenedSecret | null; readonly isEqual: boolean };

/** Reads the file again when a change came between it and the response; null when the secret is gone. */
async function compare(header: Header, keys: Keys, { path, read }: Sealed, server: Server | null) {
  let result: Comparison = { secret: null, isEqual: false };
  for (let attempt = 0; attempt < 5; attempt++) {
    const file = await read();
    if (file === null) return null;
    const secret = opened(header, keys, path, file);
    if (server === null || secret === null) return { secret, isEqual: false };
    result = { secret, isEqual: isSame(secret, await server.send("GET", target("/v1/secrets", path))) };
    if (result.isEqual) break;
  }
  return result;
}

function opened(header: Header, keys: Keys, path: string, file: Buffer): OpenedSecret | null {
  try {
    return openBlob(header, keys, path, file);
  } catch (error) {
    if (error instanceof FormatError) return null;
    throw error;
  }
}

/** A secret whose newest version is marked as deleted, or destroyed, is missing for the server's clients. */
function isSame({ value, metadata, etag }: OpenedSecret, { status, json }: Response): boolean {
  if (metadata["deletedAt"] !== undefined || metadata["destroyed"] === true) return status === 404;
  const members = ["metadata", "createdAt", "updatedAt"];
  const isSameMetadata = members.every((name) => JSON.stringify(metadata[name]) === JSON.stringify(json[name]));
  return status === 200 && isSameValue(value, json) && etag === json["etag"] && isSameMetadata;
}

/** The value box: a JSON string, or a zero byte and binary bytes. */
function isSameValue(value: Buffer, json: Json): boolean {
  if (value[0] !== 0) return json["encoding"] === undefined && JSON.parse(value.toString("utf8")) === json["value"];
  return json["encoding"] === "base64" && value.subarray(1).toString("base64") === json["value"];
}

/** The bytes of a value without what marks its kind. */
function valueText(value: Buffer): Buffer {
  return value[0] === 0 ? value.subarray(1) : value.subarray(1, -1);
}
