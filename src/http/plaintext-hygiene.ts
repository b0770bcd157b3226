/**
 * Owns that what clients send does not stay behind in the memory that TLS and HTTP read it into. Each place was found by
 * scanning the process from outside, on Node 20, 22 and 24.
 */
import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import type { Bytes } from "../../workers/protocol.js";

/** Where a body goes. */
export type Memory = (length: number) => Bytes;

/** For values. An explicit ArrayBuffer is neither on V8's heap nor in Node's pool: it can be wiped, and moved. */
export function ownMemory(length: number): Bytes {
  return new Uint8Array(new ArrayBuffer(length));
}

/**
 * For passphrases. Above 32 MiB malloc maps blocks, and unmaps them when they are freed (mallopt(3)): what is on its way
 * to a key worker that crashes leaves the process with it. Costs address space, and of memory only what is touched.
 */
export function vanishingMemory(length: number): Bytes {
  return new Uint8Array(new ArrayBuffer(Math.max(length, 33 * 2 ** 20)), 0, length);
}

/** OpenSSL's SSL_OP_CLEANSE_PLAINTEXT: it overwrites its record buffer once we have read it. Node has no name for it. */
export const cleansePlaintext = 0x2;

/**
 * Wipes each piece of a connection's plaintext once Node's HTTP parser, which listens first and copies, is through with
 * it. Listening also keeps Node from reading into one buffer for the whole process, which nobody could reach.
 */
export function wipeReceived(socket: TLSSocket): void {
  socket.on("data", (piece: Buffer) => piece.fill(0));
}

/** Discards a body that nobody will read, wiping what has come of it: it may be a passphrase all the same. */
export function discardBody(req: IncomingMessage): void {
  if (req.readableEnded) return;
  req.on("data", (chunk: Buffer) => chunk.fill(0));
  req.once("close", overwriteStackSoon).resume();
}

/** 64 KiB of arguments. */
const filler: readonly number[] = Array(8192).fill(0);

let isDue = false;

/**
 * Node decrypts into 16 KiB of its stack and leaves them there. Arguments go onto the stack too, over whatever was
 * there: called from the event loop, these reach deeper than it lay. They go to a function of V8's own, which looks at
 * two of them and which no optimization takes apart; one that looked at all took 15 µs more.
 */
export function overwriteStackSoon(): void {
  if (isDue) return;
  isDue = true;
  setImmediate(() => {
    isDue = false;
    Reflect.apply(Object.is, undefined, filler);
  });
}
