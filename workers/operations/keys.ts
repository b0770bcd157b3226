/** Operations on the slots of the header: change the passphrase; list, create and delete keys. */
import { type Header, isLabel, type KeySlot, mostSlots, type PassphraseSlot, type Slot } from "../crypto/header.js";
import { encodeLetters, isKeyText, keyBytes, keyTextLength, writeKeyText } from "../crypto/key-text.js";
import type { Keyring } from "../crypto/keyring.js";
import { withSlots } from "../crypto/master-key.js";
import { deriveKek, isKeySlot, kekOfKey, newSalt, passphraseSlot, wrap } from "../crypto/slots.js";
import { allocate, allocateMapped, concat, randomize, utf8, wipe, withScratch } from "../memory.js";
import type { Bytes, KeyDescription, Refusal, RequestOf, ResultOf } from "../protocol.js";
import {
  keyLikePassphrase,
  lastWayIn,
  lockedNow,
  noHeader,
  noKey,
  sameLabel,
  tooManyKeys,
  unfitLabel,
} from "../refusals.js";
import type { Context } from "./context.js";
import { changingHeader, type HeaderOutcome, type Opened, propose, proposeSlots, refusing } from "./header-access.js";
import type { CreateKeyBody, PassphraseBody } from "./request-bodies.js";

/** Id and label of the passphrase's slot. */
const passphraseName = "passphrase";

type KeyResult = ResultOf<"changePassphrase">;

export function keys({ keyring: { header } }: Context): ResultOf<"keys"> {
  if (!header) return noHeader(header);
  return { ok: true, response: utf8(JSON.stringify({ keys: header.slots.map(described) })) };
}

export function changePassphrase(context: Context, request: RequestOf<"changePassphrase">): Promise<KeyResult> {
  const { body } = request;
  const read = context.readers.changePassphrase(body);
  if (!read.ok) return refusing(body, read);
  const { passphrase } = read.fields;
  return changingHeader(context, body, passphrase.bytes, (opened) =>
    proposePassphrase(context.keyring, opened, request, read.fields),
  );
}

export function createKey(context: Context, request: RequestOf<"createKey">): Promise<KeyResult> {
  const { body } = request;
  const read = context.readers.createKey(body);
  if (!read.ok) return refusing(body, read);
  const { passphrase } = read.fields;
  return changingHeader(context, body, passphrase.bytes, async (opened) =>
    proposeKey(context.keyring, opened, request.now, read.fields),
  );
}

export function deleteKey({ keyring, turns }: Context, { id }: RequestOf<"deleteKey">): Promise<KeyResult> {
  return turns.take(null, async () => {
    const { header, sealingKey } = keyring;
    if (!header || sealingKey === null) return { response: lockedNow };
    const deleted = header.slots.find((slot) => slotId(slot) === id);
    if (deleted === undefined) return { response: noKey };
    const rest = header.slots.filter((slot) => slot !== deleted);
    if (rest.length === 0) return { response: lastWayIn };
    const { masterKey } = sealingKey;
    const changed = withScratch(() => withSlots(header, rest, masterKey));
    const response = utf8('{"ok":true,"message":"the key is deleted: it no longer unlocks the vault"}');
    return concerning(deleted, propose(keyring, changed, null, response));
  });
}

async function proposePassphrase(
  keyring: Keyring,
  opened: Opened,
  { logN, now }: RequestOf<"changePassphrase">,
  { newPassphrase }: PassphraseBody,
): Promise<HeaderOutcome> {
  const { header } = opened;
  const before = passphraseSlot(header);
  const keySlots = header.slots.filter(isKeySlot);
  if (keySlots.length > 0 && isKeyText(newPassphrase.bytes)) return { response: keyLikePassphrase };
  const plan = {
    kind: "passphrase",
    createdAt: new Date(now).toISOString(),
    kdf: { logN: Math.max(logN, before?.kdf.logN ?? 0), salt: newSalt() },
  } as const;
  const kek = await deriveKek(newPassphrase.bytes, plan.kdf);
  try {
    const wrapped = (masterKey: Bytes) => wrap(masterKey, plan, kek, header.vaultId);
    const response = utf8('{"ok":true,"message":"the passphrase is changed"}');
    return proposeSlots(keyring, opened, (masterKey) => [wrapped(masterKey), ...keySlots], response);
  } finally {
    wipe(kek);
  }
}

function proposeKey(keyring: Keyring, opened: Opened, now: number, body: CreateKeyBody): HeaderOutcome {
  const { header } = opened;
  const label = body.label.toString();
  const refusal = whyNoKey(header, label, body.passphrase.bytes);
  if (refusal !== null) return { response: refusal };
  const salt = newSalt();
  const plan = { kind: "key", id: newId(header), label, createdAt: new Date(now).toISOString(), salt } as const;
  const key = randomize(allocateMapped(keyBytes));
  const kek = kekOfKey(key, salt);
  try {
    const wrapped = (masterKey: Bytes) => wrap(masterKey, plan, kek, header.vaultId);
    const response = keyResult(plan, key);
    const proposed = proposeSlots(keyring, opened, (masterKey) => [...header.slots, wrapped(masterKey)], response);
    return concerning(plan, proposed);
  } finally {
    wipe(key, kek);
  }
}

function whyNoKey({ slots }: Header, label: string, passphrase: Uint8Array): Refusal | null {
  if (!isLabel(label) || /\p{Cf}|\p{Zl}|\p{Zp}|^\s|\s$/u.test(label)) return unfitLabel;
  if (slots.some((slot) => slotLabel(slot) === label) || label === passphraseName) return sameLabel;
  if (slots.filter(isKeySlot).length === mostSlots - 1) return tooManyKeys;
  // From the first key on, such a text is taken for a key's.
  return slots.length === 1 && !slots.some(isKeySlot) && isKeyText(passphrase) ? keyLikePassphrase : null;
}

function newId({ slots }: Header): string {
  for (;;) {
    const id = encodeLetters(randomize(allocate(5))).toLowerCase();
    if (slots.every((slot) => slotId(slot) !== id)) return id;
  }
}

function keyResult({ id, label }: { readonly id: string; readonly label: string }, key: Bytes): Bytes {
  const text = allocate(keyTextLength);
  writeKeyText(key, text);
  const response = concat([`{"ok":true,"id":"${id}","label":${JSON.stringify(label)},"key":"`, text, '"}']);
  wipe(text);
  return response;
}

/** The parts of a slot that name it. */
type Named = Pick<KeySlot, "kind" | "id" | "label"> | Pick<PassphraseSlot, "kind">;

/** Adds to the result which key was created or deleted. */
function concerning(slot: Named, outcome: HeaderOutcome): HeaderOutcome {
  const { response } = outcome;
  return response.ok ? { ...outcome, response: { ...response, key: describe(slot) } } : outcome;
}

function described(slot: Slot) {
  return { ...describe(slot), createdAt: slot.createdAt };
}

function describe(slot: Named): KeyDescription {
  return { id: slotId(slot), kind: slot.kind, label: slotLabel(slot) };
}

function slotId(slot: Named): string {
  return slot.kind === "key" ? slot.id : passphraseName;
}

function slotLabel(slot: Named): string {
  return slot.kind === "key" ? slot.label : passphraseName;
}
