/** A transit key that an operation uses: its private parts are opened when they are needed, and wiped with the operation. */
import { createPublicKey, type KeyObject } from "node:crypto";
import { etagOfCurrent, type SealingKey } from "../crypto/blob.js";
import { Invalid } from "./body.js";
import { type KeyInfo, openKey } from "./key-format.js";
import type { PrivateKeys } from "./private-keys.js";

export class UsableKey {
  readonly info: KeyInfo;
  readonly name: string;
  readonly #sealingKey: SealingKey;
  readonly #blob: Uint8Array;
  readonly #parsed: PrivateKeys;
  #parts: readonly Uint8Array[] | null = null;

  constructor(sealingKey: SealingKey, name: string, blob: Uint8Array, info: KeyInfo, parsed: PrivateKeys) {
    this.#sealingKey = sealingKey;
    this.name = name;
    this.#blob = blob;
    this.info = info;
    this.#parsed = parsed;
  }

  get latest(): number {
    return this.info.versions.length;
  }

  get etag(): string {
    return etagOfCurrent(this.#blob);
  }

  /** Checks the number of a version that a request names. @throws Invalid */
  allowed(version: number): number {
    const { minDecryptionVersion } = this.info;
    if (version < 1 || version > this.latest) {
      throw new Invalid(`the key ${this.name} has no version ${version}`, "invalid ciphertext: version is too new");
    }
    if (version >= minDecryptionVersion) return version;
    throw new Invalid(
      `version ${version} of the key ${this.name} is no longer allowed: its minDecryptionVersion is ${minDecryptionVersion}`,
      "ciphertext or signature version is disallowed by policy (too old)",
    );
  }

  /** Returns the private part of a version, in scratch memory. */
  privatePart(version: number): Uint8Array {
    this.#parts ??= openKey(this.#sealingKey, this.name, this.#blob)?.privateParts ?? [];
    const part = this.#parts[version - 1];
    if (part === undefined) throw new DamagedKey(this.name);
    return part;
  }

  privateKey(version: number): KeyObject {
    const { id, type } = this.info;
    return this.#parsed.get(id, version, type, () => this.privatePart(version));
  }

  publicKey(version: number): KeyObject {
    return createPublicKey(this.info.versions[version - 1]?.publicKey ?? "");
  }
}

/** The metadata of a key opens, and its private parts do not. */
export class DamagedKey extends Error {
  readonly keyName: string;

  constructor(keyName: string) {
    super();
    this.keyName = keyName;
  }
}
