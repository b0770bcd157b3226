/** A second decoder of the vault's header, written from the format's description: tests search memory for its keys. */
import { createHmac, scryptSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

export type Keys = { readonly kek: Uint8Array; readonly masterKey: Uint8Array };

/** @throws Error when the passphrase does not match the header's MAC. */
export function decodeKeys(home: string, passphrase: string): Keys {
  const generation = readFileSync(join(home, "vault", "current"), "latin1").trim();
  const file = readFileSync(join(home, "vault", generation, "header.json"), "latin1");
  const header = JSON.parse(file);
  const { logN, r, p, salt } = header.kdf;
  const cost = { N: 2 ** logN, r, p, maxmem: 2 ** 31 };
  const kek = scryptSync(passphrase, Buffer.from(salt, "base64url"), 32, cost);
  const mac = (key: Uint8Array, ...parts: (string | Uint8Array)[]) =>
    parts.reduce((hmac, part) => hmac.update(part), createHmac("sha256", key)).digest();
  const signed = file.slice(0, file.indexOf(',"mac":'));
  if (mac(mac(kek, "strongroom v1 header key"), signed).toString("base64url") !== header.mac) throw new Error("wrong");
  const pad = mac(kek, "strongroom v1 key wrap", Buffer.from(header.vaultId, "base64url"));
  const masterKey = Buffer.from(header.wrappedKey, "base64url").map((byte, i) => byte ^ (pad[i] ?? 0));
  return { kek, masterKey };
}
