/** Uses of transit keys with short bodies, packed in one buffer each way: see `Call` and `Used` for the forms. */
import { type Bytes, type RequestOf, type Result, transitUses, type Used } from "../../workers/protocol.js";

/** Uses that are quick with most keys: the body is too short for a batch of many. */
const quickUses: readonly string[] = ["encrypt", "decrypt", "hmac"];
const quickBodyBytes = 2048;

export function isQuickUse({ use, body }: RequestOf<"useTransitKey">): boolean {
  return quickUses.includes(use) && body.byteLength <= quickBodyBytes;
}

export type PackableUse = RequestOf<"useTransitKey"> & { readonly blob: Bytes };

export function fitsPacked(use: RequestOf<"useTransitKey">): use is PackableUse {
  return isQuickUse(use) && use.blob !== null && use.form === undefined;
}

/** Copies them: the bodies stay the callers'. As in a moved put, a body is lost unwiped if its thread crashed. */
export function packUses(uses: readonly PackableUse[]): Bytes {
  let length = 0;
  for (const { name, blob, body } of uses) length += 13 + Buffer.byteLength(name) + blob.length + body.length;
  const target = Buffer.from(new ArrayBuffer(length));
  let at = 0;
  for (const { use, name, blob, body } of uses) {
    const blobAt = at + 13 + target.write(name, at + 13);
    target[at] = transitUses.indexOf(use);
    target.writeUInt32BE(blobAt - at - 13, at + 1);
    target.writeUInt32BE(blob.length, at + 5);
    target.writeUInt32BE(body.length, at + 9);
    target.set(blob, blobAt);
    target.set(body, blobAt + blob.length);
    at = blobAt + blob.length + body.length;
  }
  return target;
}

/** Calls `resolve` with each of so many results. Each response is a part of one buffer, which its sender wipes by itself. */
export function resolveUses(count: number, [bytes, others]: Used, resolve: (i: number, result: Result) => void): void {
  const fields = Buffer.from(bytes.buffer);
  let at = 0;
  for (let i = 0; i < count; i++) {
    const other = others?.get(i);
    if (other !== undefined) {
      resolve(i, other);
      continue;
    }
    const end = at + 4 + fields.readUInt32BE(at);
    resolve(i, { ok: true, response: bytes.subarray(at + 4, end) });
    at = end;
  }
}
