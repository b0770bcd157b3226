/** Optimistic retry: a change is based on what was read, and runs again when another server has changed that. */
import type { Bytes, SharedBytes } from "../../../workers/protocol.js";
import { ChangedMeanwhile } from "../condition.js";
import { wipingAfter } from "../wiping.js";

/** Of servers that compete for a path, one succeeds each time: with 4 of them, the chance of 200 losses in a row is 10^-25. */
const mostAttempts = 200;

/** Runs a change that consumes its body, each time with a copy of it. The caller wipes the body. */
export async function repeatingWith<B extends Bytes | SharedBytes, T>(
  body: B,
  copy: (body: B) => B,
  change: (body: B) => Promise<T>,
): Promise<T> {
  return repeating(() => {
    const copied = copy(body);
    return wipingAfter(copied, change(copied));
  });
}

/** Runs a change until no other server's change comes in between. @throws ChangedMeanwhile after too many attempts */
export async function repeating<T>(change: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await change();
    } catch (error) {
      if (!(error instanceof ChangedMeanwhile) || attempt === mostAttempts) throw error;
    }
  }
}

export function copyOf(bytes: Bytes): Bytes {
  return bytes.slice();
}

export function sharedCopyOf(bytes: SharedBytes): SharedBytes {
  const copy = new Uint8Array(new SharedArrayBuffer(bytes.length));
  copy.set(bytes);
  return copy;
}
