/** Bytes of a text, as the key worker and storage pass them. */
import type { Bytes } from "../../workers/protocol.js";

export function bytes(content: string): Bytes {
  const encoded = new TextEncoder().encode(content);
  return new Uint8Array(new ArrayBuffer(encoded.length)).map((_, at) => encoded[at] ?? 0);
}
