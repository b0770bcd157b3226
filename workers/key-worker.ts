/**
 * Owns the key worker's thread: takes one request, answers one reply, never throws across. It does no I/O and has no
 * clock; what it needs to know comes with the request.
 */
import { move, transferableSymbol, valueSymbol, workerData } from "piscina";
import { faultOf } from "./blob.js";
import { bodyReaders } from "./bodies.js";
import { Keyring } from "./keyring.js";
import { Lifecycle } from "./lifecycle.js";
import type { Batch, Operation, Reply, ReplyOf, Request, RequestOf, WorkerSettings } from "./protocol.js";
import { unexpected } from "./refusals.js";
import { Secrets } from "./secrets.js";

const readers = bodyReaders((workerData as WorkerSettings).maxValueBytes);
const keyring = new Keyring();
const lifecycle = new Lifecycle(keyring, readers);
const secrets = new Secrets(keyring, readers);

const operations: { readonly [O in Operation]: (request: RequestOf<O>) => ReplyOf<O> | Promise<ReplyOf<O>> } = {
  mount: (request) => lifecycle.mount(request),
  init: (request) => lifecycle.init(request),
  adopt: () => lifecycle.adopt(),
  discard: () => lifecycle.discard(),
  unlock: (request) => lifecycle.unlock(request),
  lock: () => lifecycle.lock(),
  inspect: ({ blobs }) => ({ ok: true, faults: blobs.map(({ head, length }) => faultOf(head, length)) }),
  seal: (request) => secrets.seal(request),
  open: (request) => secrets.open(request),
  describe: (request) => secrets.describe(request),
  reveal: (request) => secrets.reveal(request),
};

/** The thread's only entry: piscina calls it with each message, and moves the replies' bytes back. */
export async function handle(message: Request | Batch): Promise<object> {
  if (message.op !== "batch") {
    const reply = await answer(message);
    return moved(reply, [reply]);
  }
  const replies = await Promise.all(message.requests.map(answer));
  return moved(replies, replies);
}

async function answer<O extends Operation>(request: RequestOf<O>): Promise<Reply> {
  try {
    const operation = operations[request.op as O];
    return await operation(request);
  } catch (error) {
    return unexpected(error);
  }
}

function moved(value: Reply | readonly Reply[], replies: readonly Reply[]): object {
  return move({ [transferableSymbol]: replies.flatMap(buffersOf), [valueSymbol]: value });
}

function buffersOf(reply: Reply): ArrayBuffer[] {
  return Object.values(reply).flatMap((part) => (part instanceof Uint8Array ? [part.buffer as ArrayBuffer] : []));
}
