/** Rotation of the master key: begin it, seal each secret anew, and finish it. */
import { metadataEnd, presentEnd } from "../crypto/blob-structure.js";
import type { Header, KeySlot } from "../crypto/header-members.js";
import { isKeyText } from "../crypto/key-text.js";
import { endKeys, rotateKey, rotationOf, withoutOldKey } from "../crypto/master-key.js";
import { resealBlob } from "../crypto/reseal.js";
import {
  deriveKek,
  isKeySlot,
  isMistypedKey,
  keyWrapping,
  newSalt,
  passphraseSlotOf,
  type Wrapping,
} from "../crypto/slots.js";
import type { JsonText } from "../json/json-string.js";
import type { Keyring } from "../keyring.js";
import { concat, utf8, wipe, withScratch } from "../memory.js";
import type { ReplyOf, RequestOf } from "../protocol.js";
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
import type { Refusal } from "../replies.js";
import type { BodyReaders, RotateBody } from "../request-bodies.js";
import type { Outcome, Turns } from "../turns.js";
import { type HeaderAccess, type HeaderOutcome, type Opened, refusing } from "./header-access.js";

export class Rotation {
  readonly #keyring: Keyring;
  readonly #readers: BodyReaders;
  readonly #turns: Turns;
  readonly #access: HeaderAccess;

  constructor(keyring: Keyring, readers: BodyReaders, turns: Turns, access: HeaderAccess) {
    this.#keyring = keyring;
    this.#readers = readers;
    this.#turns = turns;
    this.#access = access;
  }

  rotate(request: RequestOf<"rotate">): Promise<ReplyOf<"rotate">> {
    const { body, logN } = request;
    const read = this.#readers.rotate(body);
    if (!read.ok) return refusing(body, read);
    const { passphrase, keys } = read.fields;
    const { header } = this.#keyring;
    if (header && keys.some(({ bytes }) => isMistypedKey(header, bytes))) return refusing(body, mistypedKey);
    return this.#access.changing(body, passphrase.bytes, (opened) => this.#rotate(opened, read.fields, logN));
  }

  /** Seals a blob anew where the old key sealed it. */
  reseal({ path, blob }: RequestOf<"reseal">): ReplyOf<"reseal"> {
    return this.#keyring.withKey((key) => {
      const { blob: resealed, intact } = resealBlob(key, path, blob);
      if (resealed === null) return { ok: true, blob: null, intact, headLength: 0, presentLength: 0 };
      const lengths = { headLength: metadataEnd(resealed), presentLength: presentEnd(resealed) };
      return { ok: true, blob: resealed, intact, ...lengths };
    });
  }

  finishRotation({ rotation }: RequestOf<"finishRotation">): Promise<ReplyOf<"finishRotation">> {
    return this.#turns.take(null, async (): Promise<Outcome<ReplyOf<"finishRotation">>> => {
      const { header, sealingKey } = this.#keyring;
      if (!header || sealingKey === null) return { reply: lockedNow };
      if (rotationOf(header) !== rotation) return { reply: notRotating };
      const finished = withScratch(() => withoutOldKey(header, sealingKey.masterKey));
      const until = this.#keyring.propose(finished, null);
      return { reply: { ok: true, header: concat([finished.bytes]) }, until };
    });
  }

  async #rotate(opened: Opened, { passphrase, keys }: RotateBody, logN: number): Promise<HeaderOutcome> {
    const { header, access } = opened;
    const refusal = whyNotRotate(opened);
    if (refusal !== null) return { reply: refusal };
    const texts = access.slot.kind === "key" ? [passphrase, ...keys] : keys;
    const wrappings = keyWrappings(header, texts);
    try {
      if (wrappings === null) return { reply: unknownKey };
      if (access.slot.kind === "passphrase")
        wrappings.unshift(await passphraseWrapping(header, passphrase.bytes, logN));
      return this.#proposeRotation(opened, wrappings);
    } finally {
      wipe(...(wrappings ?? []).map(({ kek }) => kek));
    }
  }

  #proposeRotation(opened: Opened, wrappings: readonly Wrapping[]): HeaderOutcome {
    if (this.#access.isLate(opened)) return { reply: lockedMeanwhile };
    const { header, access } = opened;
    const rotated = withScratch(() => rotateKey(header, access, wrappings));
    if (rotated === null) return { reply: changedHeader };
    const isUnlocked = this.#keyring.sealingKey !== null;
    if (!isUnlocked) endKeys(rotated.keys);
    return this.#access.propose(rotated.header, isUnlocked ? rotated.keys : null, rotateReply(header, rotated.header));
  }
}

function whyNotRotate({ header, access }: Opened): Refusal | null {
  if (header.oldKey !== null) return alreadyRotating;
  return access.slot.kind === "key" && passphraseSlotOf(header) !== null ? needsPassphrase : null;
}

/** Returns the slots of these texts, in the header's order; null when a text opens none. */
function keyWrappings(header: Header, texts: readonly JsonText[]): Wrapping[] | null {
  const found = texts.map(({ bytes }) => (isKeyText(bytes) ? keyWrapping(header, bytes) : null));
  const wrappings = found.filter((one) => one !== null);
  if (wrappings.length < found.length) {
    wipe(...wrappings.map(({ kek }) => kek));
    return null;
  }
  const all = new Map(wrappings.map((one) => [idOf(one), one])); // a text may be given twice
  for (const one of wrappings) if (all.get(idOf(one)) !== one) wipe(one.kek);
  return header.slots.flatMap((slot) => all.get(slot.kind === "key" ? slot.id : "") ?? []);
}

function idOf({ plan }: Wrapping): string {
  return plan.kind === "key" ? plan.id : "";
}

async function passphraseWrapping(header: Header, passphrase: Uint8Array, logN: number): Promise<Wrapping> {
  const slot = passphraseSlotOf(header);
  if (slot === null) throw new Error("the passphrase was proven, and has no slot");
  const kdf = { logN: Math.max(logN, slot.kdf.logN), salt: newSalt() };
  return { plan: { kind: "passphrase", createdAt: slot.createdAt, kdf }, kek: await deriveKek(passphrase, kdf) };
}

function rotateReply(before: Header, after: Header) {
  const kept = new Set(after.slots.filter(isKeySlot).map(({ id }) => id));
  const removed = before.slots.filter((slot): slot is KeySlot => isKeySlot(slot) && !kept.has(slot.id));
  const message = "the master key is rotated: what the old one sealed is sealed anew in the background";
  return utf8(JSON.stringify({ ok: true, message, removed: removed.map(({ label }) => label) }));
}
