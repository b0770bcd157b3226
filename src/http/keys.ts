/** Endpoints of the vault's passphrase and keys. */
import { change } from "../audit/record.js";
import { passphrase } from "./body.js";
import { bytes, endpoint, id, none } from "./endpoint.js";

// biome-ignore format: what is decided for an endpoint stands in lines that can be compared
export const keyRows = [
  endpoint({
    operation: "unlock", at: "POST /v1/unlock", scope: "unlock", guard: "passphrase", audit: change("unlock"),
    subject: none, body: passphrase, conditional: false, reads: false,
    handle: async ({ vault, body, permit }) => bytes(await vault.unlock(body, permit)),
  }),
  endpoint({
    operation: "changePassphrase", at: "POST /v1/passphrase", scope: "root", guard: "passphrase", audit: change("passphrase"),
    subject: none, body: passphrase, conditional: false, reads: false,
    handle: async ({ vault, body, permit }) => bytes(await vault.keys.changePassphrase(body, permit)),
  }),
  endpoint({
    operation: "rotate", at: "POST /v1/rotate", scope: "root", guard: "passphrase", audit: change("rotate"),
    subject: none, body: passphrase, conditional: false, reads: false,
    async handle({ service, vault, body, permit }) {
      const response = await vault.keys.rotate(body, permit);
      return { ...bytes(response), after: () => service.audit?.checkpoint("key") };
    },
  }),
  endpoint({
    operation: "keys", at: "GET /v1/keys", scope: "root", guard: "none", audit: null,
    subject: none, body: null, conditional: false, reads: true,
    handle: async ({ vault }) => bytes(await vault.keys.list()),
  }),
  endpoint({
    operation: "createKey", at: "POST /v1/keys", scope: "root", guard: "passphrase", audit: change("key-create"),
    subject: none, body: passphrase, conditional: false, reads: false,
    async handle({ vault, body, permit, recorded }) {
      const { response, key } = await vault.keys.create(body, permit);
      recorded.key = key;
      return bytes(response);
    },
  }),
  endpoint({
    operation: "deleteKey", at: "DELETE /v1/keys/:id", scope: "root", guard: "none", audit: change("key-delete"),
    subject: id, body: null, conditional: false, reads: false,
    async handle({ vault, id: slot, permit, recorded }) {
      const { response, key } = await vault.keys.delete(slot, permit);
      recorded.key = key;
      return bytes(response);
    },
  }),
];
