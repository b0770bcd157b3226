/**
 * Hygiene of received plaintext: what clients send does not stay in the memory that TLS and HTTP read it into. Each place
 * was found by scanning the process from outside, on Node 20, 22 and 24.
 */
import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import type { Bytes } from "../../workers/protocol.js";

/** Allocates memory for a body. */
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

/** OpenSSL's SSL_OP_CLEANSE_PLAINTEXT, which has no name in Node: overwrites the record buffer once it is read. */
export const cleansePlaintext = 0x2;

/**
 * Wipes each chunk of a connection's plaintext after Node's HTTP parser, which listens first, has copied it. Listening also
 * keeps Node from reading into one buffer for the whole process, which cannot be reached.
 */
export function wipeReceived(socket: TLSSocket): void {
  socket.on("data", (chunk: Buffer) => chunk.fill(0));
}

/** Discards and wipes a body that will not be read: it may hold a passphrase all the same. */
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
 * these reach deeper than the plaintext. The callee is a builtin, which reads only two of them and is never inlined; one
 * that read all took 15 µs more.
 */
export function overwriteStackSoon(): void {
  if (isDue) return;
  isDue = true;
  setImmediate(() => {
    isDue = false;
    Reflect.apply(Object.is, undefined, filler);
  });
}
