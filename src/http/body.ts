/**
 * Request body reader: copies the body into memory of our own, which can be transferred to the key worker and wiped. The
 * body never becomes a string here, and each of Node's chunks is wiped after it is copied.
 */
import type { Request, Response } from "express";
import type { Bytes, SharedBytes } from "../../workers/protocol.js";
import { copySecret } from "../../workers/registers.js";
import { VaultError } from "../errors.js";
import { overwriteStackSoon } from "./connections.js";
import type { BodyRule } from "./endpoint.js";
import { requestContext } from "./request.js";

/**
 * Memory limit for all request bodies. The first `freeBodyBytes` of each do not count, so that no flood of large bodies
 * refuses a lock, an unlock or a put of usual size.
 */
const mostBodyBytes = 128 * 2 ** 20;
const freeBodyBytes = 64 * 1024;

let countedBytes = 0;

/** Memory that one body takes of this limit until its request has been carried out. */
class CountedBody {
  readonly #req: Request;
  #bytes = 0;

  constructor(req: Request) {
    this.#req = req;
  }

  /** Counts so many bytes and returns true if there is memory for them. A body that is alone is always accepted. */
  fits(length: number): boolean {
    const wanted = length - freeBodyBytes;
    if (wanted <= 0) return true;
    const others = countedBytes - this.#bytes;
    if (others > 0 && others + wanted > mostBodyBytes) return false;
    countedBytes = others + wanted;
    this.#bytes = wanted;
    requestContext(this.#req).bodyDone ??= () => {
      countedBytes -= this.#bytes;
      this.#bytes = 0;
    };
    return true;
  }
}

/** The client disconnected before its request was complete. */
export class ClientGone extends Error {}

const firstAllocation = 4096;

/**
 * A body gets this much memory at first, however much is announced: what is announced and not sent costs no more. Memory
 * that the C library has used before is cleared when it is allocated, and so is resident at once.
 */
const mostAtFirst = 2 ** 20;

/** Each chunk costs the event loop time, however short it is: a batch's body in chunks of one byte would block it. */
const mostSmallPieces = 4096;
const smallPieceBytes = 16;

/** Allocates the memory for a body. */
type Memory<B extends ArrayBufferLike> = (length: number) => Uint8Array<B>;

/**
 * Reads the whole body.
 * @throws VaultError BAD_REQUEST for an encoded body or one of more than `limit` bytes, UNAVAILABLE while too many large ones
 * are being read; ClientGone
 */
export function readBody<B extends ArrayBufferLike>(
  req: Request,
  res: Response,
  limit: number,
  memory: Memory<B>,
): Promise<Uint8Array<B>> {
  const content = req.headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  const transfer = req.headers["transfer-encoding"]?.trim().toLowerCase() ?? "chunked";
  if (content !== "identity" || transfer !== "chunked") {
    throw new VaultError("BAD_REQUEST", "the body must not be compressed or otherwise encoded: send it as plain JSON");
  }
  const declared = req.headers["content-length"];
  if (declared !== undefined && Number(declared) > limit) throw tooLarge(limit);
  if (req.headers.expect?.toLowerCase() === "100-continue") res.writeContinue();
  const [atFirst, most] = declared === undefined ? [firstAllocation, limit] : [mostAtFirst, Number(declared)];
  return collect(req, Math.min(atFirst, most), most, memory);
}

function collect<B extends ArrayBufferLike>(
  req: Request,
  atFirst: number,
  limit: number,
  memory: Memory<B>,
): Promise<Uint8Array<B>> {
  const counted = new CountedBody(req);
  let body = memory(atFirst);
  let length = 0;
  let pieces = 0;
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      req.off("data", take).off("end", finish).off("close", gone).pause();
      body.fill(0, 0, length); // no more: memory that was never written costs nothing
      overwriteStackSoon();
      reject(error);
    };
    const refusalAt = (more: number) => {
      if (more > limit) return tooLarge(limit);
      const isChunked = req.headers["transfer-encoding"] !== undefined;
      if (isChunked && pieces > mostSmallPieces && length < pieces * smallPieceBytes) return tooManyChunks();
      return counted.fits(more) ? null : tooManyBodies();
    };
    const take = (chunk: Buffer) => {
      pieces++;
      const refusal = refusalAt(length + chunk.length);
      if (refusal !== null) return fail(refusal);
      if (length + chunk.length > body.length) body = grown(body, memory(Math.min(limit, 2 * (length + chunk.length))));
      copySecret(body, chunk, length);
      length += chunk.length;
      chunk.fill(0);
    };
    const finish = () => {
      req.off("close", gone);
      overwriteStackSoon();
      resolve(body.subarray(0, length));
    };
    const gone = () => fail(new ClientGone());
    req.on("data", take).once("end", finish).once("close", gone).on("error", gone);
  });
}

function grown<B extends ArrayBufferLike>(from: Uint8Array<B>, larger: Uint8Array<B>): Uint8Array<B> {
  copySecret(larger, from);
  from.fill(0);
  return larger;
}

function tooManyChunks(): VaultError {
  const problem = `the body has more than ${mostSmallPieces} chunks of fewer than ${smallPieceBytes} bytes on average`;
  return new VaultError("BAD_REQUEST", `${problem}: send it in larger ones`);
}

function tooManyBodies(): VaultError {
  const problem = "the server is reading too many large bodies: send this one again in a few seconds";
  return new VaultError("UNAVAILABLE", problem, { retryAfter: 1 });
}

function tooLarge(limit: number): VaultError {
  return new VaultError("BAD_REQUEST", `the body is larger than the limit of ${limit} bytes`);
}

/** Memory for values. An explicit ArrayBuffer, not on V8's heap or in Node's pool, can be wiped and transferred. */
function ownMemory(length: number): Bytes {
  return new Uint8Array(new ArrayBuffer(length));
}

/** Memory for passphrases. The vault wipes it when the request has ended, even if the key worker's thread crashed. */
function sharedMemory(length: number): SharedBytes {
  return new Uint8Array(new SharedArrayBuffer(length));
}

/** Size limit for bodies without a value, in bytes: far above what a passphrase, keys, a description or paths need. */
const maxFieldsBytes = 64 * 1024;

/** Size limit for batches without values, in bytes: 1,000 paths of the longest kind. */
const maxPathsBytes = 2 * 2 ** 20;

/** A secret's value with its metadata. The memory is moved to the key worker. */
export const value: BodyRule<ArrayBuffer> = {
  ...{ called: "value", memory: ownMemory },
  limit: ({ maxBodyBytes }) => maxBodyBytes,
};

/** Like `value`, in memory that the vault may read more than once. */
export const sharedValue: BodyRule<SharedArrayBuffer> = {
  ...{ called: "value", memory: sharedMemory },
  limit: ({ maxBodyBytes }) => maxBodyBytes,
};

/** Members without a value or a credential. */
export function fields(limit: number = maxFieldsBytes): BodyRule<ArrayBuffer> {
  return { called: "fields", memory: ownMemory, limit: () => limit };
}

/** Passphrases, or texts of keys. */
export const passphrase: BodyRule<SharedArrayBuffer> = {
  ...{ called: "passphrase", memory: sharedMemory },
  limit: () => maxFieldsBytes,
};

/** One input of a transit key, or a batch of them. */
export const input: BodyRule<SharedArrayBuffer> = {
  ...{ called: "input", memory: sharedMemory },
  limit: ({ maxBatchBytes }) => maxBatchBytes,
};

/** Operations on secrets. A caller that cannot put sends only paths. */
export const batch: BodyRule<SharedArrayBuffer> = {
  ...{ called: "batch", memory: sharedMemory },
  limit({ maxBatchBytes }, caller) {
    const canPut = caller === "root" || caller?.token.can.includes("put");
    return canPut ? maxBatchBytes : Math.min(maxBatchBytes, maxPathsBytes);
  },
};
