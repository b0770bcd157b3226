/** Endpoints of tokens: the root token creates, lists, rotates and revokes; every token may ask who it is. */
import { readRotation, readTokenRequest, rootName } from "../access/token-request.js";
import type { NewToken } from "../access/tokens.js";
import { change } from "../audit/record.js";
import { scopes } from "../contract/names.js";
import { fields } from "./body.js";
import { endpoint, json, none, type Recorded, token, type Whole } from "./endpoint.js";

/** Longer than any valid body, with every character escaped. */
const body = fields(512 * 1024);

// biome-ignore format: what is decided for an endpoint stands in lines that can be compared
export const tokenRows = [
  endpoint({
    operation: "listTokens", at: "GET /v1/tokens", scope: "root", guard: "none", audit: null,
    subject: none, body: null, conditional: false, reads: true,
    async handle({ service: { tokens } }) {
      await tokens.readMissed();
      return json({ tokens: tokens.list() });
    },
  }),
  endpoint({
    operation: "createToken", at: "POST /v1/tokens", scope: "root", guard: "background", audit: change("token-create"),
    subject: none, body, conditional: false, reads: false,
    async handle({ service: { tokens }, body: request, permit, recorded }) {
      return made(recorded, await tokens.create(readTokenRequest(request), permit));
    },
  }),
  endpoint({
    operation: "showSelf", at: "GET /v1/tokens/self", scope: "any", guard: "none", audit: null,
    subject: none, body: null, conditional: false, reads: true,
    handle: ({ service: { tokens }, caller }) => json(caller === "root" ? rootToken : tokens.show(caller)),
  }),
  endpoint({
    operation: "rotateToken", at: `POST /v1/tokens/${rootName}`, scope: "root", guard: "none", audit: change("token-rotate"),
    subject: none, body, conditional: false, reads: false,
    async handle({ service: { rootRotation }, body: request, permit, recorded }) {
      const text = await rootRotation.rotate(readRotation(request), permit);
      recorded.subject = rootName;
      return json({ ok: true, token: text, ...rootToken });
    },
  }),
  endpoint({
    operation: "rotateToken", at: "POST /v1/tokens/:name", scope: "root", guard: "background", audit: change("token-rotate"),
    subject: token, body, conditional: false, reads: false,
    async handle({ service: { tokens }, token: name, body: request, permit, recorded }) {
      return made(recorded, await tokens.rotate(name, readRotation(request), permit));
    },
  }),
  endpoint({
    operation: "revokeToken", at: "DELETE /v1/tokens/:name", scope: "root", guard: "none", audit: change("token-revoke"),
    subject: token, body: null, conditional: false, reads: false,
    async handle({ service: { tokens }, token: name, permit, recorded }) {
      await tokens.revoke(name, permit);
      recorded.subject = name;
      return json({ ok: true, name, message: "the token is revoked" });
    },
  }),
];

const rootToken = { name: rootName, can: scopes, paths: [], createdAt: null, expiresAt: null, lastUsedAt: null };

function made(recorded: Recorded, { text, shown }: NewToken): Whole {
  recorded.subject = shown.name;
  return json({ ok: true, token: text, ...shown });
}
