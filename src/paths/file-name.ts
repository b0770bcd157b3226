/**
 * Encoding of a secret path's segment as a file name. It stays readable, any URL decoder reverses it, and two segments
 * never share a name, even on file systems that ignore case, normalise Unicode, or follow Windows' rules.
 *
 *   a secret a/B/c is the file  a/%42/c.sealed   the segment a is the directory  a
 *
 * Lower-case ASCII letters, digits, `-`, `_` and `.` stand for themselves; every other byte of UTF-8 is `%` and two
 * lower-case hex digits. A dot is escaped where it has a meaning: first (our own files begin with one), last (Windows
 * drops it) and before a final `sealed`. The first letter of a Windows device name (`con`, `nul`, `com1`, …) is escaped.
 */
import { join } from "node:path";

export const sealedSuffix = ".sealed";

/** In bytes; the limit of common file systems. */
const maxNameLength = 255;

const escaped = /[^a-z0-9._-]|^\.|\.$|\.(?=sealed$)/gu;
/** Most segments: they need no escaping. */
const plain = /^[a-z0-9_-]+$/;
const deviceName = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?=\.|$)/;

export function directoryName(segment: string): string {
  if (plain.test(segment) && !deviceName.test(segment)) return segment;
  const name = segment.replace(escaped, percent);
  return deviceName.test(name) ? percent(name.slice(0, 1)) + name.slice(1) : name;
}

export function secretFileName(segment: string): string {
  return directoryName(segment) + sealedSuffix;
}

export function blobFile(root: string, path: string): string {
  const segments = path.split("/");
  const directories = segments.slice(0, -1).map(directoryName);
  return join(root, ...directories, secretFileName(segments.at(-1) ?? ""));
}

export function fitsFileName(segment: string): boolean {
  return secretFileName(segment).length <= maxNameLength;
}

/** Returns the segment that a directory stands for; null for a name that `directoryName` never returns. */
export function segmentOfDirectory(name: string): string | null {
  if (plain.test(name) && !deviceName.test(name)) return name;
  try {
    const segment = decodeURIComponent(name);
    return directoryName(segment) === name && !segment.includes("/") ? segment : null;
  } catch {
    return null;
  }
}

/** Returns the last segment of the secret in a file; null for a name that `secretFileName` never returns. */
export function segmentOfFile(name: string): string | null {
  return name.endsWith(sealedSuffix) ? segmentOfDirectory(name.slice(0, -sealedSuffix.length)) : null;
}

function percent(character: string): string {
  return Buffer.from(character, "utf8").toString("hex").replace(/../g, "%$&");
}
