/**
 * The key worker: responds to every request and never throws across. It does no I/O and has no clock: what an operation
 * needs to know comes with the request.
 */
import { Keyring } from "../crypto/keyring.js";
import type { Call, CallResult, RequestOf, Result, SentLocks, WorkerSettings, WorkerStart } from "../protocol.js";
import { unexpected } from "../refusals.js";
import { TransitState } from "../transit/state.js";
import { Turns } from "../turns.js";
import { ComputedTokens } from "../uses/tokens.js";
import { assess } from "./assess.js";
import { reviewTokens, startExchange } from "./computed-tokens.js";
import type { Context, OperationTable } from "./context.js";
import { changePassphrase, createKey, deleteKey, keys } from "./keys.js";
import { kvMetadata, kvRead, kvVersions } from "./kv.js";
import { adopt, discard, drain, init, load, lock, unlock } from "./lifecycle.js";
import { startLogin } from "./logins.js";
import { openPacked } from "./opens.js";
import { resignRecords, signCheckpoint, signRecords, verifyCheckpoints, verifyRecords } from "./records.js";
import { bodyReaders } from "./request-bodies.js";
import { finishRotation, reseal, rotate } from "./rotation.js";
import { describe, inspect, plan } from "./secrets.js";
import {
  changeTransitKey,
  checkTransitDeletion,
  createTransitKey,
  exportTransitKey,
  hashBytes,
  listTransitKeys,
  oneTimeCode,
  randomBytes,
  reserveMessages,
  showTransitKey,
  useTransitKey,
} from "./transit.js";
import { describeUses, readDecision, render } from "./uses.js";
import { check, history, openVersion } from "./versions.js";
import { write } from "./write.js";

const operations: OperationTable = {
  ...{ load, init, adopt, discard, unlock, lock, drain },
  ...{ keys, changePassphrase, createKey, deleteKey },
  ...{ rotate, reseal, finishRotation },
  ...{ inspect, write, describe, assess, plan },
  ...{ history, openVersion, check },
  ...{ kvRead, kvMetadata, kvVersions },
  ...{ createTransitKey, changeTransitKey, showTransitKey, exportTransitKey, checkTransitDeletion, listTransitKeys },
  ...{ useTransitKey, reserveMessages, randomBytes, hashBytes, oneTimeCode },
  ...{ describeUses, readDecision, render, startExchange, startLogin, reviewTokens },
  ...{ signRecords, verifyRecords, resignRecords, signCheckpoint, verifyCheckpoints },
};

/** The members of MessagePort that this thread uses. */
type Port = {
  on(event: "message", take: (call: Call) => void): unknown;
  postMessage(result: CallResult, moved: readonly ArrayBuffer[]): void;
};

/** Called once in a thread; it responds to what comes over the port for as long as the thread lives. */
export function serve({ port, settings, sentLocks }: WorkerStart<Port>): Promise<never> {
  const context = newContext(settings, sentLocks);
  port.on("message", (call: Call) => void respond(port, context, call));
  return new Promise(() => {});
}

export function newContext(settings: WorkerSettings, sentLocks: SentLocks): Context {
  const readers = bodyReaders(settings.maxValueBytes);
  const transit = new TransitState();
  const computed = new ComputedTokens();
  const keyring = new Keyring(sentLocks, () => {
    transit.forget();
    computed.clear();
  });
  return { settings, keyring, readers, turns: new Turns(), transit, computed, now: 0 };
}

/** The responses' bytes are moved, not copied. */
async function respond(port: Port, shared: Context, [id, now, requests, opens]: Call): Promise<void> {
  const context = { ...shared, now };
  const responses = requests && (await Promise.all(requests.map((request) => responseTo(context, request))));
  const opened = opens === null ? noneOpened : openPacked(context, opens);
  const moved = responses === null ? [] : responses.flatMap(resultBuffers);
  if (opened[0] !== null) moved.push(opened[0].buffer);
  port.postMessage([id, responses, ...opened], moved);
}

const noneOpened = [null, null] as const;

type Cloned = keyof OperationTable;

async function responseTo<O extends Cloned>(context: Context, request: RequestOf<O>): Promise<Result> {
  try {
    const operate: OperationTable[O] = operations[request.op as O];
    return await operate(context, request);
  } catch (error) {
    return unexpected(error);
  }
}

function resultBuffers(response: Result): ArrayBuffer[] {
  return Object.values(response).flatMap((part) => (part instanceof Uint8Array ? [part.buffer as ArrayBuffer] : []));
}
