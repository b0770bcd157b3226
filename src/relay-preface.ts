/**
 * First bytes of each connection that the relay of a sandbox makes to the broker, in the form of a request: on that connection
 * the broker takes one token only. The relay's end outside the sandbox writes them, so that no program inside can leave them
 * out; they narrow what a connection may do and hold no secret, so that sending them gains nothing.
 */
import { createHash, timingSafeEqual } from "node:crypto";

const method = "RELAY";

/** Returns the preface of a connection on which only this token counts. */
export function relayPreface(token: string): string {
  return `${method} /session/${fingerprint(token).toString("hex")} HTTP/1.1\r\nHost: broker\r\n\r\n`;
}

/** Returns the fingerprint of the only token that counts; null for a request that is no preface. */
export function readRelayPreface(request: { readonly method: string; readonly target: string }): Buffer | null {
  const [, digits] = /^\/session\/([0-9a-f]{64})$/.exec(request.target) ?? [];
  return request.method === method && digits !== undefined ? Buffer.from(digits, "hex") : null;
}

export function hasFingerprint(token: string, expected: Buffer): boolean {
  return timingSafeEqual(fingerprint(token), expected);
}

function fingerprint(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
