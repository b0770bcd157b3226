/** Endpoints of the trash. */
import { change, read } from "../audit/record.js";
import { endpoint, json, none, secret } from "./endpoint.js";
import { listParts, readListQuery } from "./secrets.js";

// biome-ignore format: what is decided for an endpoint stands in lines that can be compared
export const trashRows = [
  endpoint({
    operation: "listTrash", at: "GET /v1/trash", scope: "list", guard: "unlocked", audit: read("list-trash"),
    subject: none, body: null, conditional: false, query: readListQuery, reads: true,
    handle: (call) => listParts(call, (query) => call.vault.trash.list(query)),
  }),
  endpoint({
    operation: "trash", at: "POST /v1/trash/:path", scope: "delete", guard: "unlocked", audit: change("trash"),
    subject: secret, body: null, conditional: "change", reads: false,
    async handle({ vault, path, condition, permit }) {
      const deletedAt = new Date(await vault.trash.move(path, condition, permit)).toISOString();
      return json({ ok: true, path, message: "the secret is in the trash", deletedAt });
    },
  }),
  endpoint({
    operation: "untrash", at: "POST /v1/untrash/:path", scope: "put", guard: "unlocked", audit: change("untrash"),
    subject: secret, body: null, conditional: "change", reads: false,
    async handle({ vault, path, condition, permit }) {
      await vault.trash.restore(path, condition, permit);
      return json({ ok: true, path, message: "the secret is back" });
    },
  }),
  endpoint({
    operation: "destroyTrashed", at: "DELETE /v1/trash/:path", scope: "delete", guard: "unlocked", audit: change("destroy"),
    subject: secret, body: null, conditional: "change", reads: false,
    async handle({ vault, path, condition, permit }) {
      await vault.trash.destroy(path, condition, permit);
      return json({ ok: true, path, message: "the secret is destroyed" });
    },
  }),
];
