/** Upgrade of the passphrase's slot to a higher scrypt cost, when an unlock has shown the passphrase. */
import type { Bytes } from "../owned-bytes.js";
import type { Header, Kdf } from "./header-members.js";
import { changeSlots } from "./master-key.js";
import { type Access, deriveKek, newSalt, wrap } from "./slots.js";

/** The caller wipes the KEK. */
type StrongerKdf = { readonly kdf: Kdf; readonly kek: Bytes };

/** Null when the slot's cost is not below, or a key opened it. */
export async function strongerKdf({ slot }: Access, passphrase: Uint8Array, logN: number): Promise<StrongerKdf | null> {
  if (slot.kind !== "passphrase" || slot.kdf.logN >= logN) return null;
  const kdf = { logN, salt: newSalt() };
  return { kdf, kek: await deriveKek(passphrase, kdf) };
}

export function withStrongerKdf(header: Header, access: Access, { kdf, kek }: StrongerKdf): Header | null {
  return changeSlots(header, access, (masterKey) =>
    header.slots.map((slot) =>
      slot === access.slot
        ? wrap(masterKey, { kind: "passphrase", createdAt: slot.createdAt, kdf }, kek, header.vaultId)
        : slot,
    ),
  );
}
