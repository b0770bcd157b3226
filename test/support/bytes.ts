/** Bytes of a text, as the key worker and storage pass them, and a wait until bytes are wiped. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Bytes } from "../../workers/protocol.js";

export function bytes(content: string): Bytes {
  const encoded = new TextEncoder().encode(content);
  return new Uint8Array(new ArrayBuffer(encoded.length)).map((_, at) => encoded[at] ?? 0);
}

/** Fails by the test's own timeout. */
export async function untilWiped(...arrays: readonly Uint8Array[]): Promise<void> {
  while (arrays.some((array) => array.some((byte) => byte !== 0))) await sleep(5);
}
