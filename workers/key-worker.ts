/**
 * Owns the key worker's thread: takes requests, answers each with a reply, never throws across. It does no I/O and has no
 * clock; what it needs to know comes with the request.
 */
import { workerData } from "piscina";
import { faultOf } from "./crypto/blob.js";
import { Keyring } from "./keyring.js";
import { Lifecycle } from "./lifecycle-operations.js";
import type { Answer, Call, Operation, Reply, ReplyOf, RequestOf, WorkerSettings } from "./protocol.js";
import { unexpected } from "./refusals.js";
import { bodyReaders } from "./request-bodies.js";
import { Secrets } from "./secret-operations.js";

const { maxValueBytes, minScryptLogN } = workerData as WorkerSettings;
const readers = bodyReaders(maxValueBytes);
const keyring = new Keyring();
const lifecycle = new Lifecycle(keyring, readers, minScryptLogN);
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

/** What this thread needs of a MessagePort. */
type Line = {
  on(event: "message", take: (call: Call) => void): unknown;
  postMessage(answer: Answer, moved: readonly ArrayBuffer[]): void;
};

/** The thread's only entry: piscina calls it once. It answers what comes over the line as long as the thread lives. */
export function serve(line: Line): Promise<never> {
  line.on("message", (call: Call) => void respond(line, call));
  return new Promise(() => {});
}

/** The replies' bytes are moved, not copied. */
async function respond(line: Line, { id, requests }: Call): Promise<void> {
  const replies = await Promise.all(requests.map(answer));
  line.postMessage({ id, replies }, replies.flatMap(buffersOf));
}

async function answer<O extends Operation>(request: RequestOf<O>): Promise<Reply> {
  try {
    const operation = operations[request.op as O];
    return await operation(request);
  } catch (error) {
    return unexpected(error);
  }
}

function buffersOf(reply: Reply): ArrayBuffer[] {
  return Object.values(reply).flatMap((part) => (part instanceof Uint8Array ? [part.buffer as ArrayBuffer] : []));
}
