/** Logins as secrets, for the credential helpers of other programs: FOLDER/USER holds the password, one secret a user. */
import type { StrongroomClient } from "../../../client/client.js";
import { CommandFailure } from "../errors.js";
import type { Io } from "../io.js";
import { readBytes } from "../prompts/input.js";

/** More than any credential, so that no input fills the memory: podman's secrets have at most 512,000 bytes. */
const maxInputBytes = 512 * 1024;

/** Reads standard input, for the caller to wipe. @throws CommandFailure usage, for more than a credential */
export async function readHelperInput(io: Io, isWhole?: (read: Uint8Array) => boolean): Promise<Buffer> {
  const bytes = await readBytes(io.stdinDescriptor, "standard input", maxInputBytes, isWhole);
  const input = Buffer.from(bytes.buffer);
  if (input.length <= maxInputBytes) return input;
  input.fill(0);
  throw new CommandFailure("usage", "standard input has more than 512 KiB, which is no credential");
}

export type Login = { readonly path: string; readonly user: string };

/** Returns a text as one segment of a path: `decodeURIComponent` reverses it. */
export function encodeSegment(text: string): string {
  const encoded = encodeURIComponent(text).replaceAll("%40", "@").replaceAll("%3A", ":");
  return /^\.\.?$/.test(encoded) ? encoded.replaceAll(".", "%2E") : encoded;
}

/** Returns the text of a segment; null for a segment that `encodeSegment` never returns. */
export function decodeSegment(segment: string): string | null {
  try {
    const text = decodeURIComponent(segment);
    return encodeSegment(text) === segment ? text : null;
  } catch {
    return null;
  }
}

/** Returns the logins of a folder, which ends in a slash, ascending by path; of one user, or of all. */
export async function loginsIn(client: StrongroomClient, folder: string, user: string | null): Promise<Login[]> {
  const logins: Login[] = [];
  for await (const { entries } of client.pages({
    prefix: user === null ? folder : folder + encodeSegment(user),
    limit: 1000,
  })) {
    for (const { path } of entries) {
      const found = decodeSegment(path.slice(folder.length));
      if (found !== null && found !== "" && (user === null || found === user)) logins.push({ path, user: found });
    }
  }
  return logins;
}

/** Returns the password's bytes, which are the caller's to wipe; null when there is none. */
export async function readPassword(client: StrongroomClient, { path }: Login): Promise<Buffer | null> {
  const secret = await client.getOrUndefined(path);
  return secret === undefined ? null : Buffer.from(secret.revealBytes());
}

/**
 * Stores a password unless it is already stored: programs report each login that worked.
 * @param expiresAt null keeps the time that a password has which is already there
 */
export async function storePassword(
  client: StrongroomClient,
  path: string,
  password: Uint8Array,
  description: string,
  expiresAt: string | null = null,
): Promise<void> {
  const before = await client.getOrUndefined(path);
  const held = before === undefined ? null : Buffer.from(before.revealBytes());
  const isSame = held?.equals(password) === true;
  held?.fill(0);
  const { expiresAt: earlier, ...metadata } = before?.metadata ?? { type: "password", description };
  if (isSame && (expiresAt === null || Date.parse(expiresAt) === Date.parse(earlier ?? ""))) return;
  const expiry = expiresAt === null ? {} : { expiresAt };
  await client.put(path, password, { ...metadata, ...expiry, replaceMetadata: true });
}

/** Moves a login to the trash; with a password, only a login that has it. */
export async function eraseLogin(client: StrongroomClient, login: Login, password: Uint8Array | null): Promise<void> {
  const stored = password === null ? null : await readPassword(client, login);
  const isOther = password !== null && stored?.equals(password) !== true;
  stored?.fill(0);
  if (!isOther) await client.trash(login.path);
}
