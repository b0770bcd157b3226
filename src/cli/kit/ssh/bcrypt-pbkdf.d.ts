/** The part of bcrypt-pbkdf that is used; the package has no types. */
declare module "bcrypt-pbkdf" {
  /** Fills `out` with the derived key. */
  export function pbkdf(
    passphrase: Uint8Array,
    passphraseLength: number,
    salt: Uint8Array,
    saltLength: number,
    out: Uint8Array,
    outLength: number,
    rounds: number,
  ): number;
}
