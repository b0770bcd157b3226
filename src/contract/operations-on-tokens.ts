/** Table of the operations on client tokens. */
import type { Operation } from "./operation.js";

const token = `src_${"h7Zk".repeat(10)}h7Z`;
const shown = {
  name: "ci",
  can: ["list", "get"],
  paths: ["app/"],
  createdAt: "2026-03-01T12:00:00.000Z",
  expiresAt: "2026-05-30T12:00:00.000Z",
  lastUsedAt: null,
};

export const tokenOperations: readonly Operation[] = [
  {
    id: "createToken",
    method: "post",
    path: "/v1/tokens",
    tag: "tokens",
    summary: "Create a client token",
    description:
      "Needs the root token and an unlocked vault. The text is in this response and nowhere else: the server keeps its " +
      "SHA-256. A forced init of the vault drops all client tokens.",
    body: { schema: "TokenRequest", example: { name: "ci", paths: ["app/"] } },
    response: { schema: "NewToken", description: "The token.", example: { ok: true, token, ...shown } },
    errors: ["VAULT_LOCKED", "ALREADY_EXISTS", "INTERNAL", "INTEGRITY"],
  },
  {
    id: "listTokens",
    method: "get",
    path: "/v1/tokens",
    tag: "tokens",
    summary: "List the client tokens",
    description: "Needs the root token. Ascending by name; expired tokens stay for 30 days.",
    response: { schema: "TokenList", description: "The tokens.", example: { tokens: [shown] } },
    errors: [],
  },
  {
    id: "showSelf",
    method: "get",
    path: "/v1/tokens/self",
    tag: "tokens",
    summary: "Show the token of this request",
    description: "For every token. The root token has the name `root`, may do everything and has no end.",
    anyToken: true,
    response: { schema: "Token", description: "The token.", example: shown },
    errors: [],
  },
  {
    id: "rotateToken",
    method: "post",
    path: "/v1/tokens/{name}",
    tag: "tokens",
    summary: "Rotate a client token",
    description:
      "Needs the root token and, except for the name `root`, an unlocked vault. The new text is valid for as long as the first " +
      "was to be; the old one stays valid for the overlap, of which up to eight may run at a time. `root` writes a new token file, too; its overlap ends with the " +
      "server at the latest.",
    parameters: ["name"],
    body: { schema: "RotationRequest", example: { overlapSeconds: 3600 } },
    response: {
      schema: "NewToken",
      description: "The token with its new text.",
      example: { ok: true, token, ...shown },
    },
    errors: ["VAULT_LOCKED", "NOT_FOUND", "INTERNAL", "INTEGRITY"],
  },
  {
    id: "revokeToken",
    method: "delete",
    path: "/v1/tokens/{name}",
    tag: "tokens",
    summary: "Revoke a client token",
    description:
      "Needs the root token; the vault may be locked. The response is sent once the token would stay revoked across a power " +
      "cut. On a disk that fails (503), or with a damaged document (500), it stays revoked until the server restarts.",
    parameters: ["name"],
    response: {
      schema: "Revoked",
      description: "The token is revoked.",
      example: { ok: true, name: "ci", message: "the token is revoked" },
    },
    errors: ["NOT_FOUND", "INTEGRITY"],
  },
];
