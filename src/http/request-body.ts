/**
 * Request body reader: copies the body into memory of our own, which can be transferred to the key worker and wiped. The
 * body never becomes a string here, and each of Node's chunks is wiped after it is copied.
 */
import type { Request, Response } from "express";
import { VaultError } from "../errors.js";
import { overwriteStackSoon } from "./plaintext-hygiene.js";

/** The client disconnected before its request was complete. */
export class ClientGone extends Error {}

const firstAllocation = 4096;

/** Allocates the memory for a body. */
type Memory<B extends ArrayBufferLike> = (length: number) => Uint8Array<B>;

/** @throws VaultError BAD_REQUEST for an encoded body or one of more than `limit` bytes; ClientGone */
export async function readBody<B extends ArrayBufferLike>(
  req: Request,
  res: Response,
  limit: number,
  memory: Memory<B>,
): Promise<Uint8Array<B>> {
  refuseEncoded(req);
  const declared = Number(req.headers["content-length"] ?? firstAllocation);
  if (declared > limit) throw tooLarge(limit);
  if (req.headers.expect?.toLowerCase() === "100-continue") res.writeContinue();
  return collect(req, declared, limit, memory);
}

function refuseEncoded(req: Request): void {
  const content = req.headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  const transfer = req.headers["transfer-encoding"]?.trim().toLowerCase() ?? "chunked";
  if (content !== "identity" || transfer !== "chunked") {
    throw new VaultError("BAD_REQUEST", "the body must not be compressed or otherwise encoded: send it as plain JSON");
  }
}

function collect<B extends ArrayBufferLike>(
  req: Request,
  declared: number,
  limit: number,
  memory: Memory<B>,
): Promise<Uint8Array<B>> {
  let body = memory(declared);
  let length = 0;
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      req.off("data", take).off("end", finish).off("close", gone).pause();
      body.fill(0);
      overwriteStackSoon();
      reject(error);
    };
    const take = (chunk: Buffer) => {
      if (length + chunk.length > limit) return fail(tooLarge(limit));
      if (length + chunk.length > body.length) body = grown(body, memory(Math.min(limit, 2 * (length + chunk.length))));
      body.set(chunk, length);
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
  larger.set(from);
  from.fill(0);
  return larger;
}

function tooLarge(limit: number): VaultError {
  return new VaultError("BAD_REQUEST", `the body is larger than the limit of ${limit} bytes`);
}
