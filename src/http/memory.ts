/**
 * Wiping of received plaintext from the memory that TLS and HTTP read it into. Each place was found by scanning the
 * process from outside, on Node 20, 22 and 24.
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { Bytes, SharedBytes } from "../../workers/protocol.js";

/** For values. An explicit ArrayBuffer is neither on V8's heap nor in Node's pool: it can be wiped and transferred. */
export function ownMemory(length: number): Bytes {
  return new Uint8Array(new ArrayBuffer(length));
}

/** For passphrases. The vault wipes it when the request has ended, even if the key worker's thread has crashed. */
export function sharedMemory(length: number): SharedBytes {
  return new Uint8Array(new SharedArrayBuffer(length));
}

/** OpenSSL's SSL_OP_CLEANSE_PLAINTEXT, for which Node has no name: wipes the record buffer once it has been read. */
export const cleansePlaintext = 0x2;

/**
 * Whether a connection keeps up to 15 bytes from the end of each TLS record until its next record or its end. OpenSSL's AES-GCM
 * for processors with AVX-512 leaves the last, incomplete block of plaintext in the cipher's state (OpenSSL 3.1 and later, thus
 * Node 22 and 24). Node cannot clear it, but the end of the connection does.
 */
export function keepsPlaintext(socket: Socket | null): boolean {
  return socket instanceof TLSSocket && /GCM/.test(socket.getCipher().name);
}

/** Discards an unread body and wipes what arrives of it: it may hold a passphrase. */
export function discardBody(req: IncomingMessage): void {
  if (req.readableEnded) return;
  req.on("data", (chunk: Buffer) => chunk.fill(0));
  req.once("close", overwriteStackSoon).resume();
}

/** 64 KiB of arguments. */
const filler: readonly number[] = Array(8192).fill(0);

let isDue = false;

/**
 * Overwrites the 16 KiB of stack into which Node decrypts. Arguments are pushed onto the stack, and from the event loop
 * these reach deeper than the plaintext did. They are passed to a V8 builtin, which reads only two of them and is never
 * optimized away; a function that reads all of them would cost more than the rest of a get.
 */
export function overwriteStackSoon(): void {
  if (isDue) return;
  isDue = true;
  setImmediate(() => {
    isDue = false;
    Reflect.apply(Object.is, undefined, filler);
  });
}
