/** Table of the operations on the passphrase and the keys of the vault. */
import type { Operation } from "./operation.js";

const passphrase = "seven words that no one else would guess";
const createdAt = "2026-03-01T12:00:00.000Z";
const counted = "A wrong passphrase counts as one at unlock.";

export const keyOperations: readonly Operation[] = [
  {
    id: "changePassphrase",
    method: "post",
    path: "/v1/passphrase",
    tag: "vault",
    summary: "Change the passphrase",
    description:
      "The vault stays locked or unlocked, as it is. The response is sent once the old passphrase opens nothing, also after " +
      `a power cut. The text of a key will do, too: then the passphrase may be a forgotten one. ${counted}`,
    body: {
      schema: "PassphraseRequest",
      example: { passphrase, newPassphrase: "seven other words that no one would guess" },
    },
    response: {
      schema: "Acknowledgement",
      description: "The passphrase is changed.",
      example: { ok: true, message: "the passphrase is changed" },
    },
    errors: ["VAULT_LOCKED", "INTERNAL", "INTEGRITY"],
  },
  {
    id: "keys",
    method: "get",
    path: "/v1/keys",
    tag: "vault",
    summary: "List the keys",
    description: "All ways into the vault, the passphrase among them. The vault may be locked.",
    response: {
      schema: "KeyList",
      description: "The keys.",
      example: { keys: [{ id: "k7f3q9zx", kind: "key", label: "recovery", createdAt }] },
    },
    errors: ["INTERNAL"],
  },
  {
    id: "createKey",
    method: "post",
    path: "/v1/keys",
    tag: "vault",
    summary: "Create a key",
    description:
      "Makes a random key of 256 bits, which opens the vault as the passphrase does, and returns its text: it is shown once " +
      `and stored nowhere. A vault has at most 15. The vault stays locked or unlocked, as it is. ${counted}`,
    body: { schema: "KeyRequest", example: { passphrase, label: "recovery" } },
    response: {
      schema: "CreatedKey",
      description: "The key is created.",
      example: {
        ok: true,
        id: "k7f3q9zx",
        label: "recovery",
        key: "SRK-00000-00001-00002-00003-00004-00005-00006-00007-00008-00009-0000A-0000B-0000C",
      },
    },
    errors: ["VAULT_LOCKED", "ALREADY_EXISTS", "INTERNAL", "INTEGRITY"],
  },
  {
    id: "deleteKey",
    method: "delete",
    path: "/v1/keys/{id}",
    tag: "vault",
    summary: "Delete a key",
    description:
      "The key opens nothing once the response is sent, also after a power cut. The vault must be unlocked. The last key, or " +
      "the passphrase where there is no other, cannot be deleted (400).",
    parameters: ["id"],
    response: {
      schema: "Acknowledgement",
      description: "The key is deleted.",
      example: { ok: true, message: "the key is deleted, and opens nothing any more" },
    },
    errors: ["VAULT_LOCKED", "NOT_FOUND", "INTERNAL"],
  },
  {
    id: "rotate",
    method: "post",
    path: "/v1/rotate",
    tag: "vault",
    summary: "Rotate the master key",
    description:
      "Makes a new master key, wrapped for the passphrase and for the keys whose texts are given; all other keys open nothing " +
      "any more. From then on everything is sealed under the new key, and what the old one sealed is sealed anew in the " +
      "background while the vault is unlocked, until nothing of the old key is left. Reads and writes go on; the status says " +
      `how far it is. The vault stays locked or unlocked, as it is. ${counted}`,
    body: { schema: "RotateRequest", example: { passphrase, keys: [] } },
    response: {
      schema: "Rotated",
      description: "The master key is rotated.",
      example: {
        ok: true,
        message: "the master key is rotated: what the old one sealed is sealed anew in the background",
        removed: ["recovery"],
      },
    },
    errors: ["VAULT_LOCKED", "ALREADY_EXISTS", "INTERNAL", "INTEGRITY"],
  },
];
