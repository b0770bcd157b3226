/** Uses of transit keys with short bodies, packed in one message: see `Call` and `Used` for the forms. */
import { allocate, putUint32, readUint32, textOf, wipe } from "../memory.js";
import { type Bytes, type RequestOf, type ResultOf, transitUses, type Used } from "../protocol.js";
import { unexpected } from "../refusals.js";
import type { Context } from "./context.js";
import { useTransitKey } from "./transit.js";

type UseRequest = RequestOf<"useTransitKey">;
type UseResult = ResultOf<"useTransitKey">;

/** Wipes what it is given: it holds plaintexts. */
export async function usePacked(context: Context, packed: Bytes): Promise<Used> {
  try {
    return packedResults(await Promise.all(unpacked(packed).map((request) => useResult(context, request))));
  } finally {
    wipe(packed);
  }
}

function unpacked(packed: Bytes): UseRequest[] {
  const requests: UseRequest[] = [];
  for (let at = 0; at < packed.length; ) {
    const nameAt = at + 13;
    const blobAt = nameAt + readUint32(packed, at + 1);
    const bodyAt = blobAt + readUint32(packed, at + 5);
    const end = bodyAt + readUint32(packed, at + 9);
    const name = textOf(packed.subarray(nameAt, blobAt));
    const [blob, body] = [packed.subarray(blobAt, bodyAt), packed.subarray(bodyAt, end)];
    requests.push({ op: "useTransitKey", use: transitUses[packed[at] ?? 0] ?? "encrypt", name, blob, body });
    at = end;
  }
  return requests;
}

async function useResult(context: Context, request: UseRequest): Promise<UseResult> {
  try {
    return await useTransitKey(context, request);
  } catch (error) {
    return unexpected(error);
  }
}

/** Moves the responses into one buffer. */
function packedResults(results: readonly UseResult[]): Used {
  const responses = results.map((result) => (result.ok ? result.response : null));
  const bytes = allocate(responses.reduce((sum, response) => sum + (response === null ? 0 : 4 + response.length), 0));
  const others = new Map<number, UseResult>();
  let at = 0;
  for (const [i, result] of results.entries()) {
    const response = responses[i] ?? null;
    if (response === null) {
      others.set(i, result);
      continue;
    }
    putUint32(bytes, at, response.length);
    bytes.set(response, at + 4);
    wipe(response);
    at += 4 + response.length;
  }
  return [bytes, others.size === 0 ? null : others];
}
