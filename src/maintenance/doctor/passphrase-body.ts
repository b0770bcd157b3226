/** JSON body of an unlock, built from a passphrase's bytes without making a string of them. */
import type { SharedBytes } from "../../../workers/protocol.js";

/** Returns `{"passphrase":"…"}` for valid UTF-8; the caller wipes both. */
export function passphraseBody(passphrase: Uint8Array): SharedBytes {
  const before = '{"passphrase":"';
  const after = '"}';
  const escapes = passphrase.reduce((sum, byte) => sum + (escapeOf(byte)?.length ?? 1) - 1, 0);
  const body = new Uint8Array(new SharedArrayBuffer(before.length + passphrase.length + escapes + after.length));
  let at = putAscii(body, 0, before);
  for (const byte of passphrase) {
    const spelled = escapeOf(byte);
    if (spelled === null) body[at++] = byte;
    else at = putAscii(body, at, spelled);
  }
  putAscii(body, at, after);
  return body;
}

/** Returns the JSON escape of a byte; null when it needs none. */
function escapeOf(byte: number): string | null {
  if (byte === 0x22 || byte === 0x5c) return byte === 0x22 ? '\\"' : "\\\\";
  return byte < 0x20 ? `\\u00${byte.toString(16).padStart(2, "0")}` : null;
}

/** Returns the end of the text. */
function putAscii(target: Uint8Array, at: number, text: string): number {
  for (let i = 0; i < text.length; i++) target[at + i] = text.charCodeAt(i);
  return at + text.length;
}
