/** A file that `scan` searches, as it is now or in git's history. */
import { isUtf8 } from "node:buffer";
import type { Repository } from "./git.js";

/** `origin`: the object in git's history; null for a file as it is now. `place`: the repository that it is in. */
export type ScannedFile = {
  readonly name: string;
  readonly origin: string | null;
  readonly bytes: Buffer;
  readonly place: Repository | null;
};

/** A larger file is not searched; it is named. */
export const mostBytes = 256 * 2 ** 20;

/** Returns a name as text; a name that is not UTF-8 with its bytes in hex. */
export function shown(name: Buffer): string {
  if (isUtf8(name)) return name.toString();
  return name.toString("latin1").replace(/[\x80-\xff]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16)}`);
}
