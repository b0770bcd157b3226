/** Outcomes of a batch's operations: work in slices, wiping of replies that are not sent, and the response. */
import type { Bytes } from "../../../workers/protocol.js";
import type { Basis, Change } from "../../storage/secret-store.js";
import type { SealedBlob } from "../cached-store.js";

/** Bounds the memory for blobs beside those of the batch itself, and lets other requests have their turn. */
const stepsAtOnce = 32;

/** `reply`: to the operation. `changes`: what its commit makes. `sealed`: the blob among them. `basis`: what it has read. */
export type Outcome = {
  readonly reply: Bytes;
  readonly changes: readonly Change[];
  readonly sealed?: SealedBlob;
  readonly basis?: Basis;
};

/** Runs work on all items, a slice at a time, and when any fails, wipes what the others replied. */
export async function inSlices<T>(
  items: readonly T[],
  work: (slice: readonly T[], from: number) => Promise<PromiseSettledResult<Outcome>[]>,
): Promise<Outcome[]> {
  const done: Outcome[] = [];
  return wipingOnFailure(done, async () => {
    for (let from = 0; from < items.length; from += stepsAtOnce) {
      const settled = await work(items.slice(from, from + stepsAtOnce), from);
      done.push(...settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : [])));
      const failure = settled.find((one) => one.status === "rejected");
      if (failure !== undefined) throw failure.reason;
    }
    return done;
  });
}

/** Runs work, and wipes the replies when it fails. */
export async function wipingOnFailure<T>(outcomes: readonly Outcome[], work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    for (const { reply } of outcomes) reply.fill(0);
    throw error;
  }
}

const begin = text('{"ok":true,"results":[');
const comma = text(",");
const end = text("]}");

/** Returns the response in one piece, because a write to the connection costs more than a copy; wipes the replies. */
export function response(outcomes: readonly Outcome[]): Bytes {
  const results = outcomes.flatMap(({ reply }, i) => (i > 0 ? [comma, reply] : [reply]));
  const pieces = [begin, ...results, end];
  const joined = new Uint8Array(new ArrayBuffer(pieces.reduce((sum, piece) => sum + piece.length, 0)));
  let at = 0;
  for (const piece of pieces) {
    joined.set(piece, at);
    at += piece.length;
  }
  for (const { reply } of outcomes) reply.fill(0);
  return joined;
}

export function json(value: object): Bytes {
  return text(JSON.stringify(value));
}

function text(characters: string): Bytes {
  return new TextEncoder().encode(characters);
}
