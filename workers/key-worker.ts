/**
 * The key worker: replies to every request and never throws across. It does no I/O and has no clock: what an operation
 * needs to know comes with the request.
 */

import { faultOf } from "./crypto/blob-structure.js";
import { Keyring } from "./keyring.js";
import { Batches } from "./operations/batch-operations.js";
import { HeaderAccess } from "./operations/header-access.js";
import { KeyOperations } from "./operations/key-operations.js";
import { Lifecycle } from "./operations/lifecycle-operations.js";
import { Checkpoints, Records } from "./operations/record-operations.js";
import { Rotation } from "./operations/rotation-operations.js";
import { Secrets } from "./operations/secret-operations.js";
import { Versions } from "./operations/version-operations.js";
import type { Answer, Call, Operation, Reply, ReplyOf, RequestOf } from "./protocol.js";
import { unexpected } from "./refusals.js";
import { bodyReaders } from "./request-bodies.js";
import { Turns } from "./turns.js";
import type { SentLocks, WorkerSettings, WorkerStart } from "./worker-settings.js";

type Operate<O extends Operation> = (request: RequestOf<O>) => ReplyOf<O> | Promise<ReplyOf<O>>;
type OperationTable = { readonly [O in Operation]: Operate<O> };

/** What this thread needs of a MessagePort. */
type Port = {
  on(event: "message", take: (call: Call) => void): unknown;
  postMessage(answer: Answer, moved: readonly ArrayBuffer[]): void;
};

/** Called once in a thread; it replies to what comes over the port for as long as the thread lives. */
export function serve({ port, settings, sentLocks }: WorkerStart<Port>): Promise<never> {
  const operations = operationTable(settings, sentLocks);
  port.on("message", (call: Call) => void respond(port, operations, call));
  return new Promise(() => {});
}

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one row an operation
function operationTable(settings: WorkerSettings, sentLocks: SentLocks): OperationTable {
  const { maxValueBytes, minScryptLogN } = settings;
  const readers = bodyReaders(maxValueBytes);
  const keyring = new Keyring(sentLocks);
  const turns = new Turns();
  const lifecycle = new Lifecycle(keyring, readers, turns, minScryptLogN);
  const access = new HeaderAccess(keyring, turns);
  const keys = new KeyOperations(keyring, readers, turns, access);
  const rotation = new Rotation(keyring, readers, turns, access);
  const secrets = new Secrets(keyring, readers, settings);
  const versions = new Versions(keyring, readers, settings);
  const records = new Records(keyring);
  const checkpoints = new Checkpoints(keyring);
  const batches = new Batches(keyring, readers, settings);
  return {
    mount: (request) => lifecycle.mount(request),
    init: (request) => lifecycle.init(request),
    adopt: () => lifecycle.adopt(),
    discard: () => lifecycle.discard(),
    unlock: (request) => lifecycle.unlock(request),
    // DANGER: nothing may come between the two: without the key there is no signature.
    lock: ({ checkpoint }) => {
      const signed = checkpoint === undefined ? null : checkpoints.signLast(checkpoint);
      lifecycle.lock();
      return { ok: true, signed };
    },
    drain: () => lifecycle.drain(),
    keys: () => keys.keys(),
    changePassphrase: (request) => keys.changePassphrase(request),
    createKey: (request) => keys.createKey(request),
    deleteKey: (request) => keys.deleteKey(request),
    rotate: (request) => rotation.rotate(request),
    reseal: (request) => rotation.reseal(request),
    finishRotation: (request) => rotation.finishRotation(request),
    inspect: ({ blobs }) => ({ ok: true, faults: blobs.map(({ head, length }) => faultOf(head, length)) }),
    seal: (request) => secrets.seal(request),
    open: (request) => secrets.open(request),
    openMany: (request) => secrets.openMany(request),
    describe: (request) => secrets.describe(request),
    history: (request) => versions.history(request),
    openVersion: (request) => versions.openVersion(request),
    undo: (request) => versions.undo(request),
    prune: (request) => versions.prune(request),
    plan: (request) => batches.plan(request),
    move: (request) => batches.move(request),
    copy: (request) => batches.copy(request),
    check: (request) => versions.check(request),
    reveal: (request) => secrets.reveal(request),
    signRecords: (request) => records.sign(request),
    verifyRecords: (request) => records.verify(request),
    signCheckpoint: (request) => checkpoints.sign(request),
    verifyCheckpoints: (request) => checkpoints.verify(request),
  };
}

/** The replies' bytes are moved, not copied. */
async function respond(port: Port, operations: OperationTable, { id, requests }: Call): Promise<void> {
  const replies = await Promise.all(requests.map((request) => replyTo(operations, request)));
  port.postMessage({ id, replies }, replies.flatMap(buffersOf));
}

async function replyTo<O extends Operation>(operations: OperationTable, request: RequestOf<O>): Promise<Reply> {
  try {
    const operate: Operate<O> = operations[request.op as O];
    return await operate(request);
  } catch (error) {
    return unexpected(error);
  }
}

function buffersOf(reply: Reply): ArrayBuffer[] {
  return Object.values(reply).flatMap((part) => (part instanceof Uint8Array ? [part.buffer as ArrayBuffer] : []));
}
