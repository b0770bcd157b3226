/** Operations on the slots of the header: change the passphrase; list, create and delete keys. */
import { isLabel, mostSlots } from "../crypto/header.js";
import type { Header, Slot } from "../crypto/header-members.js";
import { isKeyText, keyBytes, keyTextLength, lettersOf, writeKeyText } from "../crypto/key-text.js";
import { withSlots } from "../crypto/master-key.js";
import { deriveKek, isKeySlot, kekOfKey, newSalt, passphraseSlotOf, wrap } from "../crypto/slots.js";
import type { Keyring } from "../keyring.js";
import { allocate, allocateMapped, concat, randomize, utf8, wipe, withScratch } from "../memory.js";
import type { Bytes } from "../owned-bytes.js";
import type { ReplyOf, RequestOf } from "../protocol.js";
import { keyLikePassphrase, lastWayIn, lockedNow, noKey, sameLabel, tooManyKeys, unfitLabel } from "../refusals.js";
import type { Refusal } from "../replies.js";
import type { BodyReaders, CreateKeyBody, PassphraseBody } from "../request-bodies.js";
import type { Turns } from "../turns.js";
import { type HeaderAccess, type HeaderOutcome, noHeader, type Opened, refusing } from "./header-access.js";

/** Id and label of the passphrase's slot. */
const passphraseName = "passphrase";

type KeyReply = ReplyOf<"changePassphrase">;

export class KeyOperations {
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

  keys(): ReplyOf<"keys"> {
    const { header } = this.#keyring;
    if (!header) return noHeader(header);
    return { ok: true, reply: utf8(JSON.stringify({ keys: header.slots.map(described) })) };
  }

  changePassphrase(request: RequestOf<"changePassphrase">): Promise<KeyReply> {
    const { body } = request;
    const read = this.#readers.changePassphrase(body);
    if (!read.ok) return refusing(body, read);
    const { passphrase } = read.fields;
    return this.#access.changing(body, passphrase.bytes, (opened) =>
      this.#changePassphrase(opened, request, read.fields),
    );
  }

  createKey(request: RequestOf<"createKey">): Promise<KeyReply> {
    const { body } = request;
    const read = this.#readers.createKey(body);
    if (!read.ok) return refusing(body, read);
    const { passphrase } = read.fields;
    return this.#access.changing(body, passphrase.bytes, async (opened) =>
      this.#createKey(opened, request.now, read.fields),
    );
  }

  deleteKey({ id }: RequestOf<"deleteKey">): Promise<KeyReply> {
    return this.#turns.take(null, async () => {
      const { header, sealingKey } = this.#keyring;
      if (!header || sealingKey === null) return { reply: lockedNow };
      const rest = header.slots.filter((slot) => idOf(slot) !== id);
      if (rest.length === header.slots.length) return { reply: noKey };
      if (rest.length === 0) return { reply: lastWayIn };
      const { masterKey } = sealingKey;
      const changed = withScratch(() => withSlots(header, rest, masterKey));
      return this.#access.propose(
        changed,
        null,
        utf8('{"ok":true,"message":"the key is deleted, and opens nothing any more"}'),
      );
    });
  }

  async #changePassphrase(
    opened: Opened,
    { logN, now }: RequestOf<"changePassphrase">,
    { newPassphrase }: PassphraseBody,
  ): Promise<HeaderOutcome> {
    const { header } = opened;
    const before = passphraseSlotOf(header);
    const keys = header.slots.filter(isKeySlot);
    if (keys.length > 0 && isKeyText(newPassphrase.bytes)) return { reply: keyLikePassphrase };
    const plan = {
      kind: "passphrase",
      createdAt: new Date(now).toISOString(),
      kdf: { logN: Math.max(logN, before?.kdf.logN ?? 0), salt: newSalt() },
    } as const;
    const kek = await deriveKek(newPassphrase.bytes, plan.kdf);
    try {
      const wrapped = (masterKey: Bytes) => wrap(masterKey, plan, kek, header.vaultId);
      const reply = utf8('{"ok":true,"message":"the passphrase is changed"}');
      return this.#access.withSlots(opened, (masterKey) => [wrapped(masterKey), ...keys], reply);
    } finally {
      wipe(kek);
    }
  }

  #createKey(opened: Opened, now: number, body: CreateKeyBody): HeaderOutcome {
    const { header } = opened;
    const label = body.label.toString();
    const refusal = whyNoKey(header, label, body.passphrase.bytes);
    if (refusal !== null) return { reply: refusal };
    const salt = newSalt();
    const plan = { kind: "key", id: newId(header), label, createdAt: new Date(now).toISOString(), salt } as const;
    const key = randomize(allocateMapped(keyBytes));
    const kek = kekOfKey(key, salt);
    try {
      const wrapped = (masterKey: Bytes) => wrap(masterKey, plan, kek, header.vaultId);
      return this.#access.withSlots(opened, (masterKey) => [...header.slots, wrapped(masterKey)], keyReply(plan, key));
    } finally {
      wipe(key, kek);
    }
  }
}

function whyNoKey({ slots }: Header, label: string, passphrase: Uint8Array): Refusal | null {
  if (!isLabel(label) || /\p{Cf}|\p{Zl}|\p{Zp}|^\s|\s$/u.test(label)) return unfitLabel;
  if (slots.some((slot) => labelOf(slot) === label) || label === passphraseName) return sameLabel;
  if (slots.filter(isKeySlot).length === mostSlots - 1) return tooManyKeys;
  // From the first key on, such a text is taken for a key's.
  return slots.length === 1 && !slots.some(isKeySlot) && isKeyText(passphrase) ? keyLikePassphrase : null;
}

function newId({ slots }: Header): string {
  for (;;) {
    const id = lettersOf(randomize(allocate(5))).toLowerCase();
    if (slots.every((slot) => idOf(slot) !== id)) return id;
  }
}

function keyReply({ id, label }: { readonly id: string; readonly label: string }, key: Bytes): Bytes {
  const text = allocate(keyTextLength);
  writeKeyText(key, text);
  const reply = concat([`{"ok":true,"id":"${id}","label":${JSON.stringify(label)},"key":"`, text, '"}']);
  wipe(text);
  return reply;
}

function described(slot: Slot) {
  return { id: idOf(slot), kind: slot.kind, label: labelOf(slot), createdAt: slot.createdAt };
}

function idOf(slot: Slot): string {
  return slot.kind === "key" ? slot.id : passphraseName;
}

function labelOf(slot: Slot): string {
  return slot.kind === "key" ? slot.label : passphraseName;
}
