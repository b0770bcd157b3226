/** Rotation of the master key: begin it, seal each secret again, and finish it. */
import { endOfCurrent, resealBlob } from "../crypto/blob.js";
import type { Header, KeySlot } from "../crypto/header.js";
import { isKeyText } from "../crypto/key-text.js";
import type { Keyring } from "../crypto/keyring.js";
import { headerRotation, rotateKey, withoutOldKey } from "../crypto/master-key.js";
import {
  deriveKek,
  isKeySlot,
  isMistypedKey,
  keyWrapping,
  newSalt,
  passphraseSlot,
  type Wrapping,
} from "../crypto/slots.js";
import type { JsonText } from "../json/json-string.js";
import { concat, utf8, wipe, withScratch } from "../memory.js";
import type { Refusal, RequestOf, ResultOf } from "../protocol.js";
import {
  alreadyRotating,
  changedHeader,
  lockedMeanwhile,
  lockedNow,
  mistypedKey,
  needsPassphrase,
  notRotating,
  unknownKey,
} from "../refusals.js";
import { forTransit } from "../transit/key-format.js";
import type { TurnResult } from "../turns.js";
import type { Context } from "./context.js";
import { changingHeader, type HeaderOutcome, isLate, type Opened, propose, refusing } from "./header-access.js";
import type { RotateBody } from "./request-bodies.js";

export function rotate(context: Context, request: RequestOf<"rotate">): Promise<ResultOf<"rotate">> {
  const { body, logN } = request;
  const read = context.readers.rotate(body);
  if (!read.ok) return refusing(body, read);
  const { passphrase, keys } = read.fields;
  const { header } = context.keyring;
  if (header && keys.some(({ bytes }) => isMistypedKey(header, bytes))) return refusing(body, mistypedKey);
  return changingHeader(context, body, passphrase.bytes, (opened) =>
    rotateInTurn(context.keyring, opened, read.fields, logN),
  );
}

/** Seals a blob again where the old key sealed it. */
export function reseal({ keyring }: Context, { path, blob, isKey }: RequestOf<"reseal">): ResultOf<"reseal"> {
  return keyring.withKey((key) => {
    const { blob: resealed, intact } = resealBlob(isKey ? forTransit(key) : key, path, blob);
    if (resealed === null) return { ok: true, blob: null, intact, currentLength: 0 };
    return { ok: true, blob: resealed, intact, currentLength: endOfCurrent(resealed) };
  });
}

export function finishRotation(
  { keyring, turns }: Context,
  { rotation }: RequestOf<"finishRotation">,
): Promise<ResultOf<"finishRotation">> {
  return turns.take(null, async (): Promise<TurnResult<ResultOf<"finishRotation">>> => {
    const { header, sealingKey } = keyring;
    if (!header || sealingKey === null) return { response: lockedNow };
    if (headerRotation(header) !== rotation) return { response: notRotating };
    const finished = withScratch(() => withoutOldKey(header, sealingKey.masterKey));
    const until = keyring.propose(finished, null);
    return { response: { ok: true, header: concat([finished.bytes]) }, until };
  });
}

async function rotateInTurn(
  keyring: Keyring,
  opened: Opened,
  { passphrase, keys }: RotateBody,
  logN: number,
): Promise<HeaderOutcome> {
  const { header, access } = opened;
  const refusal = whyNotRotate(opened);
  if (refusal !== null) return { response: refusal };
  const texts = access.slot.kind === "key" ? [passphrase, ...keys] : keys;
  const wrappings = keyWrappings(header, texts);
  try {
    if (wrappings === null) return { response: unknownKey };
    if (access.slot.kind === "passphrase") wrappings.unshift(await passphraseWrapping(header, passphrase.bytes, logN));
    return proposeRotation(keyring, opened, wrappings);
  } finally {
    wipe(...(wrappings ?? []).map(({ kek }) => kek));
  }
}

function proposeRotation(keyring: Keyring, opened: Opened, wrappings: readonly Wrapping[]): HeaderOutcome {
  if (isLate(keyring, opened)) return { response: lockedMeanwhile };
  const { header, access } = opened;
  const rotated = withScratch(() => rotateKey(header, access, wrappings));
  if (rotated === null) return { response: changedHeader };
  const isUnlocked = keyring.sealingKey !== null;
  return propose(keyring, rotated.header, rotated.keys, rotateResponse(header, rotated.header), isUnlocked);
}

function whyNotRotate({ header, access }: Opened): Refusal | null {
  if (header.oldKey !== null) return alreadyRotating;
  return access.slot.kind === "key" && passphraseSlot(header) !== null ? needsPassphrase : null;
}

/** Returns the slots of these texts, in the header's order; null when a text opens none. */
function keyWrappings(header: Header, texts: readonly JsonText[]): Wrapping[] | null {
  const found = texts.map(({ bytes }) => (isKeyText(bytes) ? keyWrapping(header, bytes) : null));
  const wrappings = found.filter((one) => one !== null);
  if (wrappings.length < found.length) {
    wipe(...wrappings.map(({ kek }) => kek));
    return null;
  }
  const all = new Map(wrappings.map((one) => [slotId(one), one])); // a text may be given twice
  for (const one of wrappings) if (all.get(slotId(one)) !== one) wipe(one.kek);
  return header.slots.flatMap((slot) => all.get(slot.kind === "key" ? slot.id : "") ?? []);
}

function slotId({ plan }: Wrapping): string {
  return plan.kind === "key" ? plan.id : "";
}

async function passphraseWrapping(header: Header, passphrase: Uint8Array, logN: number): Promise<Wrapping> {
  const slot = passphraseSlot(header);
  if (slot === null) throw new Error("the passphrase was proven, and has no slot");
  const kdf = { logN: Math.max(logN, slot.kdf.logN), salt: newSalt() };
  return { plan: { kind: "passphrase", createdAt: slot.createdAt, kdf }, kek: await deriveKek(passphrase, kdf) };
}

function rotateResponse(before: Header, after: Header) {
  const kept = new Set(after.slots.filter(isKeySlot).map(({ id }) => id));
  const removed = before.slots.filter((slot): slot is KeySlot => isKeySlot(slot) && !kept.has(slot.id));
  const message = "the master key is rotated: what the old one sealed is sealed again in the background";
  return utf8(JSON.stringify({ ok: true, message, removed: removed.map(({ label }) => label) }));
}
