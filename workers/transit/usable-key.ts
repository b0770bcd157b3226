/** A transit key that an operation uses: its private parts are opened when they are needed, and wiped with the operation. */
import { createPublicKey, type KeyObject } from "node:crypto";
import type { SealingKey } from "../crypto/blob.js";
import { Invalid } from "./body.js";
import type { KeyInfo } from "./key-format.js";
import { symmetricPart } from "./key-types.js";
import type { KnownKey } from "./known-keys.js";
import type { PrivateKeys } from "./private-keys.js";
import type { TransitState } from "./state.js";

export class UsableKey {
  readonly info: KeyInfo;
  readonly name: string;
  readonly etag: string;
  readonly #known: KnownKey;
  readonly #parsed: PrivateKeys;
  #parts: readonly Uint8Array[] | null = null;

  /** @throws DamagedKey */
  constructor(sealingKey: SealingKey, name: string, blob: Uint8Array, { knownKeys, privateKeys }: TransitState) {
    const known = knownKeys.open(sealingKey, name, blob);
    if (known === null) throw new DamagedKey(name);
    this.info = known.info;
    this.name = name;
    this.etag = known.etag;
    this.#known = known;
    this.#parsed = privateKeys;
  }

  get latest(): number {
    return this.info.versions.length;
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
    this.#parts ??= this.#known.openParts() ?? [];
    const part = this.#parts[version - 1];
    if (part === undefined) throw new DamagedKey(this.name);
    return part;
  }

  /** Returns what encrypts of the private part of a version. */
  symmetricKey(version: number): Uint8Array {
    const key = symmetricPart(this.info.type, this.privatePart(version));
    if (key === null) throw new DamagedKey(this.name);
    return key;
  }

  privateKey(version: number): KeyObject {
    return this.#parsed.get(this.publicText(version), this.info.type, () => this.privatePart(version));
  }

  publicKey(version: number): KeyObject {
    return createPublicKey(this.publicText(version));
  }

  /** Returns the public key as clients see it. */
  publicText(version: number): string {
    return this.info.versions[version - 1]?.publicKey ?? "";
  }
}

/** A key does not open: it is damaged, moved or foreign. */
export class DamagedKey extends Error {
  readonly keyName: string;

  constructor(keyName: string) {
    super();
    this.keyName = keyName;
  }
}
