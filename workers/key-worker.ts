/**
 * Owns the key worker's thread: takes one request, answers one reply, never throws across. It does no I/O and has no
 * clock; what it needs to know comes with the request.
 */
import { move, transferableSymbol, valueSymbol, workerData } from "piscina";
import { openMetadata, openValue, type SealingKey, sealBlob } from "./blob.js";
import { bodyReaders, type InitBody, type PutBody } from "./bodies.js";
import { DerivationQueue } from "./derivation.js";
import { getReply, listEntry, metadataText, nextTimes, putReply, suppliedMetadata, valueText } from "./entry.js";
import { createHeader, parseHeader, unwrapMasterKey } from "./header.js";
import { Keyring } from "./keyring.js";
import { concat, utf8, wipe } from "./memory.js";
import type { Bytes, Operation, Refusal, Reply, ReplyOf, Request, RequestOf, WorkerSettings } from "./protocol.js";

const waitingDerivations = 16;

const readers = bodyReaders((workerData as WorkerSettings).maxValueBytes);
const keyring = new Keyring();
const derivations = new DerivationQueue(waitingDerivations);

const done = { ok: true } as const;

function refuse(code: Refusal["code"], detail: string): Refusal {
  return { ok: false, code, detail };
}

const lockedNow = refuse("VAULT_LOCKED", "the vault is locked: unlock it first");
const lockedMeanwhile = refuse("VAULT_LOCKED", "the vault was locked while this request waited: unlock it again");
const tooMany = refuse("RATE_LIMITED", "too many passphrases are being checked: try again in a second");
const alreadyExists = refuse("ALREADY_EXISTS", "the vault is already initialized: unlock it, or send force: true");
const notInitialized = refuse("BAD_REQUEST", "the vault is not initialized: init it first");
const wrongPassphrase = refuse("UNAUTHORIZED", "the passphrase is wrong");
const unexpected = refuse("INTERNAL", "the key worker failed");

function damaged(path: string, hint: string): Refusal {
  return refuse("INTEGRITY", `the stored secret at ${path} is damaged, or was moved here from elsewhere${hint}`);
}

function mount({ header }: RequestOf<"mount">): ReplyOf<"mount"> {
  const parsed = header && parseHeader(header);
  if (header && !parsed) return refuse("INTEGRITY", "the vault's header is damaged or from a later version");
  keyring.mount(parsed);
  return done;
}

function init({ body, logN, now }: RequestOf<"init">): ReplyOf<"init"> | Promise<ReplyOf<"init">> {
  const read = readers.init(body);
  if (!read.ok) return read;
  const { fields } = read;
  if (mayNotInit(fields)) {
    wipe(fields.passphrase.bytes);
    return alreadyExists;
  }
  return new Promise((answer) => {
    const job = () => initInTurn(fields, logN, now, answer);
    derivations.run(fields.passphrase.bytes, job).then(
      (outcome) => outcome && answer(outcome === "full" ? tooMany : lockedMeanwhile),
      () => answer(unexpected),
    );
  });
}

function mayNotInit({ force }: InitBody): boolean {
  return keyring.header !== null && force !== true;
}

/** Answers early and then keeps its turn until the vault has decided: no unlock may come between. */
async function initInTurn(
  body: InitBody,
  logN: number,
  now: number,
  answer: (reply: ReplyOf<"init">) => void,
): Promise<void> {
  if (mayNotInit(body)) return answer(alreadyExists);
  const { lockings } = keyring;
  const { header, masterKey } = await createHeader(body.passphrase.bytes, logN, now);
  wipe(body.passphrase.bytes);
  if (lockings !== keyring.lockings) {
    wipe(masterKey);
    return answer(lockedMeanwhile);
  }
  const decided = keyring.propose(header, masterKey);
  answer({ ok: true, header: concat([header.bytes]) });
  return decided;
}

function adopt(): ReplyOf<"adopt"> {
  return keyring.adopt() ? done : unexpected;
}

function discard(): ReplyOf<"discard"> {
  keyring.discard();
  return done;
}

async function unlock({ body }: RequestOf<"unlock">): Promise<ReplyOf<"unlock">> {
  const read = readers.unlock(body);
  if (!read.ok) return read;
  const passphrase = read.fields.passphrase.bytes;
  if (keyring.header === null) {
    wipe(passphrase);
    return notInitialized;
  }
  const outcome = await derivations.run(passphrase, () => unlockInTurn(passphrase));
  if (outcome === "full") return tooMany;
  return outcome === "cancelled" ? lockedMeanwhile : outcome;
}

async function unlockInTurn(passphrase: Bytes): Promise<ReplyOf<"unlock">> {
  const { header, lockings } = keyring;
  if (header === null) return notInitialized;
  const masterKey = await unwrapMasterKey(header, passphrase);
  if (masterKey === null) return wrongPassphrase;
  if (lockings !== keyring.lockings) {
    wipe(masterKey);
    return lockedMeanwhile;
  }
  keyring.unlock(masterKey);
  return { ok: true, reply: utf8('{"ok":true,"message":"the vault is unlocked"}') };
}

async function lock(): Promise<ReplyOf<"lock">> {
  keyring.lock();
  await derivations.cancel();
  return done;
}

function seal({ path, body, previous, now }: RequestOf<"seal">): ReplyOf<"seal"> {
  const key = keyring.sealingKey;
  if (key === null) {
    wipe(body);
    return lockedNow;
  }
  const read = readers.put(body);
  if (!read.ok) return read;
  try {
    return sealFields(key, path, read.fields, previous, now);
  } finally {
    wipe(read.fields.value.bytes, read.fields.description?.bytes);
  }
}

function sealFields(
  key: SealingKey,
  path: string,
  body: PutBody,
  previous: Bytes | null,
  now: number,
): ReplyOf<"seal"> {
  const before = previous && openMetadata(key, path, previous);
  if (previous && !before) return damaged(path, ": delete it before you store another");
  const supplied = suppliedMetadata(body);
  const value = valueText(body);
  try {
    const blob = sealBlob(key, path, metadataText(supplied, nextTimes(now, before)), value);
    return { ok: true, blob, reply: putReply(path, body.value.bytes.length, supplied) };
  } finally {
    wipe(value);
  }
}

function open({ path, blob }: RequestOf<"open">): ReplyOf<"open"> {
  const key = keyring.sealingKey;
  if (key === null) return lockedNow;
  const metadata = openMetadata(key, path, blob);
  const value = metadata && openValue(key, path, blob);
  return value ? { ok: true, reply: getReply(path, value, metadata) } : damaged(path, "");
}

function describe({ entries }: RequestOf<"describe">): ReplyOf<"describe"> {
  const key = keyring.sealingKey;
  if (key === null) return lockedNow;
  const parts: (Bytes | string)[] = [];
  const unreadable: string[] = [];
  for (const { path, head } of entries) {
    const metadata = openMetadata(key, path, head);
    if (metadata === null) unreadable.push(path);
    else parts.push(parts.length > 0 ? "," : "", listEntry(path, metadata));
  }
  return { ok: true, reply: concat(parts), damaged: unreadable };
}

const operations: { [O in Operation]: (request: RequestOf<O>) => ReplyOf<O> | Promise<ReplyOf<O>> } = {
  mount,
  init,
  adopt,
  discard,
  unlock,
  lock,
  seal,
  open,
  describe,
};

/** The thread's only entry: piscina calls it with each message, and moves the reply's bytes back. */
export async function handle(request: Request): Promise<object> {
  return moved(await answer(request));
}

async function answer<O extends Operation>(request: RequestOf<O>): Promise<Reply> {
  try {
    const operation = operations[request.op as O];
    return await operation(request);
  } catch {
    return unexpected; // whatever it was, its text may hold what must not leave this thread
  }
}

function moved(reply: Reply): object {
  const transfer = Object.values(reply).flatMap((part) => (part instanceof Uint8Array ? [part.buffer] : []));
  return move({ [transferableSymbol]: transfer, [valueSymbol]: reply });
}
