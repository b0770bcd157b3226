/**
 * Owns the key worker's thread: takes one request, answers one reply, never throws across. It does no I/O and has no
 * clock; what it needs to know comes with the request.
 */
import { move, transferableSymbol, valueSymbol, workerData } from "piscina";
import { faultOf } from "./blob.js";
import { bodyReaders } from "./bodies.js";
import { Keyring } from "./keyring.js";
import { Lifecycle } from "./lifecycle.js";
import type { Operation, Reply, ReplyOf, Request, RequestOf, WorkerSettings } from "./protocol.js";
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
};

/** The thread's only entry: piscina calls it with each message, and moves the reply's bytes back. */
export async function handle(request: Request): Promise<object> {
  return moved(await answer(request));
}

async function answer<O extends Operation>(request: RequestOf<O>): Promise<Reply> {
  try {
    const operation = operations[request.op as O];
    return await operation(request);
  } catch (error) {
    return unexpected(error);
  }
}

function moved(reply: Reply): object {
  const transfer = Object.values(reply).flatMap((part) => (part instanceof Uint8Array ? [part.buffer] : []));
  return move({ [transferableSymbol]: transfer, [valueSymbol]: reply });
}
