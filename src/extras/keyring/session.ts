/** Sessions of the Secret Service: how the value of a secret is written in messages, plain or encrypted. */
import {
  createCipheriv,
  createDecipheriv,
  createDiffieHellman,
  createHmac,
  type DiffieHellman,
  getDiffieHellman,
  randomBytes,
} from "node:crypto";
import { own, ownCopy, Variant } from "../../cli/kit/dbus/wire.js";
import { BusError } from "./bus.js";

type Bytes = Uint8Array<ArrayBuffer>;

/** A value as messages have it. */
export type Sealed = { readonly parameters: Uint8Array; readonly value: Uint8Array };

export interface Session {
  /** Returns the value for a message, in memory of its own. */
  seal(value: Uint8Array): Sealed;
  /** Returns the value's bytes, which the caller wipes. @throws BusError */
  open(sealed: Sealed): Bytes;
  end(): void;
}

export const algorithms = ["plain", "dh-ietf1024-sha256-aes128-cbc-pkcs7"] as const;

/** @param input what OpenSession got @returns the session, and what OpenSession returns but for the path. @throws BusError */
export function openSession(
  algorithm: string,
  input: Variant,
): { readonly session: Session; readonly output: Variant } {
  if (algorithm === algorithms[0]) return { session: new PlainSession(), output: new Variant("s", "") };
  if (algorithm !== algorithms[1]) throw new BusError("NotSupported", "the algorithm is not known");
  if (!(input.value instanceof Uint8Array)) throw invalidKey();
  const keys = newKeys();
  try {
    const publicKey = keys.generateKeys();
    return { session: new EncryptedSession(sessionKey(keys, input.value)), output: new Variant("ay", publicKey) };
  } finally {
    keys.setPrivateKey(noKey); // OpenSSL clears the one that it replaces
  }
}

const privateKeyBytes = 64;
const noKey = Uint8Array.of(1);
let group: DiffieHellman | null = null;

/** DANGER: Node examines a group for 50 ms whenever it makes one. All sessions use one, each with a private key of its own. */
function newKeys(): DiffieHellman {
  group ??= createDiffieHellman(getDiffieHellman("modp2").getPrime(), 2);
  const privateKey = randomBytes(privateKeyBytes);
  group.setPrivateKey(privateKey);
  privateKey.fill(0);
  return group;
}

class PlainSession implements Session {
  seal(value: Uint8Array): Sealed {
    return { parameters: own(0), value: ownCopy(value) };
  }

  open({ value }: Sealed): Bytes {
    return ownCopy(value);
  }

  end(): void {}
}

const blockBytes = 16;

/** AES-128 in CBC mode, with the padding of PKCS #7. */
class EncryptedSession implements Session {
  readonly #key: Bytes;

  constructor(key: Bytes) {
    this.#key = key;
  }

  seal(value: Uint8Array): Sealed {
    const parameters = randomBytes(blockBytes);
    const rest = blockBytes - (value.length % blockBytes);
    const padded = own(value.length + rest);
    padded.set(value);
    padded.fill(rest, value.length);
    const cipher = createCipheriv("aes-128-cbc", this.#key, parameters).setAutoPadding(false);
    const sealed = cipher.update(padded);
    cipher.final();
    padded.fill(0);
    return { parameters, value: sealed };
  }

  /**
   * DANGER: Node leaves what it decrypts in memory that it frees. So it decrypts single blocks, whose result is the plaintext
   * combined with the ciphertext before it, and the plaintext is made here.
   */
  open({ parameters, value }: Sealed): Bytes {
    if (parameters.length !== blockBytes || value.length === 0 || value.length % blockBytes !== 0)
      throw invalidSecret();
    const decipher = createDecipheriv("aes-128-ecb", this.#key, null).setAutoPadding(false);
    const combined = decipher.update(value);
    decipher.final();
    const padded = own(value.length);
    for (let i = 0; i < padded.length; i++) {
      const before = i < blockBytes ? parameters[i] : value[i - blockBytes];
      padded[i] = (combined[i] ?? 0) ^ (before ?? 0);
    }
    const rest = padded.at(-1) ?? 0;
    const isPadded = rest > 0 && rest <= blockBytes && padded.subarray(-rest).every((byte) => byte === rest);
    const opened = ownCopy(padded.subarray(0, isPadded ? padded.length - rest : 0));
    padded.fill(0);
    if (!isPadded) throw invalidSecret();
    return opened;
  }

  end(): void {
    this.#key.fill(0);
  }
}

const groupBytes = 128;

/** HKDF with SHA-256 (RFC 5869), without salt and info, of the shared secret as a number of the group's length. */
function sessionKey(keys: DiffieHellman, theirs: Uint8Array): Bytes {
  const shared = own(groupBytes);
  try {
    const computed = keys.computeSecret(theirs);
    shared.set(computed, groupBytes - computed.length);
    computed.fill(0);
  } catch {
    throw invalidKey();
  }
  const extracted = createHmac("sha256", own(32)).update(shared).digest();
  const expanded = createHmac("sha256", extracted).update(Uint8Array.of(1)).digest();
  const key = ownCopy(expanded.subarray(0, blockBytes));
  for (const bytes of [shared, extracted, expanded]) bytes.fill(0);
  return key;
}

function invalidKey(): BusError {
  return new BusError("InvalidArgs", "the public key is not valid");
}

function invalidSecret(): BusError {
  return new BusError("InvalidArgs", "the secret cannot be decrypted");
}
