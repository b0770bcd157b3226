/** Responses that endpoints share: the error codes with their meanings, and every header. */
import { type ErrorCode, statusOf } from "../errors.js";
import { type Schema, schemaNamed } from "./json-schema.js";

/** The table of errors in docs/http-api.md has the same texts. */
export const meanings: Readonly<Record<ErrorCode, string>> = {
  BAD_REQUEST: "the path, query, body or HTTP itself is not valid; a foreign `Host`, `Origin` or `Sec-Fetch-Site`",
  UNAUTHORIZED: "the token is missing, wrong, or has ended (`reason`); the passphrase, or the text of a key, is wrong",
  FORBIDDEN: "the client token's scope does not cover the operation or the path",
  VAULT_LOCKED: "unlock (or init) the vault first",
  NOT_FOUND: "no such secret, key, token, endpoint or method (`Allow` lists the methods)",
  ALREADY_EXISTS:
    "the vault is already initialized; the label of a key or the name of a token is taken; the master key is being rotated",
  PRECONDITION_FAILED: "`If-Match` or `If-None-Match` does not hold; nothing has changed",
  RATE_LIMITED: "too many failures, or too many passphrases at once; `Retry-After` says how long to wait",
  INTERNAL: "a failure inside; the log has more under the response's `requestId`",
  INTEGRITY:
    "this secret's file is damaged, moved or foreign; all others go on working. Or the vault's header is damaged",
  UNAVAILABLE:
    "shutting down; the disk cannot take the write; the database does not respond; or the audit log cannot be read or " +
    "written. Nothing is half-written",
};

const requestId = "5f0c2c6e-7a3c-4b52-9a52-0a3f6f1d2b11";

const examples: Readonly<Record<ErrorCode, Schema>> = {
  BAD_REQUEST: { error: "the body must be one JSON object in UTF-8" },
  UNAUTHORIZED: { error: "the bearer token is missing or wrong", credential: "token" },
  FORBIDDEN: { error: "the token ci can only list, get: use a token that can put" },
  VAULT_LOCKED: { error: "the vault is locked: unlock it first" },
  NOT_FOUND: { error: "there is no secret at app/db/password" },
  ALREADY_EXISTS: { error: "the vault is already initialized: unlock it, or send force: true" },
  PRECONDITION_FAILED: {
    error: "the secret at app/db/password is not in the state that the request requires: get it, then decide again",
  },
  RATE_LIMITED: { error: "too many wrong tokens from this address: wait, then try again" },
  INTERNAL: { error: "something failed inside the server: look for this request id in its log", requestId },
  INTEGRITY: {
    error: "the stored secret at app/db/password is damaged, or was moved here from elsewhere",
    requestId,
  },
  UNAVAILABLE: { error: "the server is shutting down", requestId },
};

const onAll: Readonly<Record<string, Schema>> = {
  "Cache-Control": constant("No cache may store a response.", "no-store"),
  "Content-Security-Policy": header("Browsers must not run a response as a page.", "default-src 'self'"),
  "Cross-Origin-Opener-Policy": constant("Isolates from windows of other sites.", "same-origin"),
  "Cross-Origin-Resource-Policy": constant("Pages of other sites cannot embed a response.", "same-origin"),
  "Origin-Agent-Cluster": constant("Asks browsers for a separate process.", "?1"),
  "Referrer-Policy": constant("No path is sent to other sites.", "no-referrer"),
  "X-Content-Type-Options": constant("Browsers must not guess another content type.", "nosniff"),
  "X-DNS-Prefetch-Control": constant("Names in a response are not looked up.", "off"),
  "X-Download-Options": constant("Old browsers must not open a download directly.", "noopen"),
  "X-Frame-Options": constant("Other sites cannot frame a response.", "SAMEORIGIN"),
  "X-Permitted-Cross-Domain-Policies": constant("No plug-in policy files are allowed.", "none"),
  "X-XSS-Protection": constant("Disables a harmful filter of old browsers.", "0"),
};

const onClientTokens: Schema = {
  ...header("When the client token ends; only in its last 7 days. ISO 8601, UTC.", "2026-05-30T12:00:00.000Z"),
  required: false,
};

const onSome = {
  "Retry-After": {
    description: "Seconds to wait before the next attempt.",
    required: true,
    schema: { type: "integer", minimum: 1 },
    example: 300,
  },
  "WWW-Authenticate": constant("The required scheme.", "Bearer"),
  ETag: header("The secret's tag, in quotes.", '"n0O6NdgaeP0QMXWP"'),
} satisfies Readonly<Record<string, Schema>>;

const allow: Schema = { ...header("The methods of the path, where it exists.", "GET, PUT, DELETE"), required: false };

const headersOf: Partial<Record<ErrorCode, keyof typeof onSome>> = {
  UNAUTHORIZED: "WWW-Authenticate",
  RATE_LIMITED: "Retry-After",
};

const expires = { "Strongroom-Token-Expires": onClientTokens };

export const componentHeaders: Schema = { ...onAll, ...expires, ...onSome };

export const commonHeaders: Schema = headersNamed(Object.keys({ ...onAll, ...expires }));

export const taggedHeaders: Schema = { ...commonHeaders, ...headersNamed(["ETag"]) };

/** Error codes with the same status: one response of the document. */
export type Group = readonly ErrorCode[];

export function groupsOf(codes: readonly ErrorCode[]): Group[] {
  const statuses = [...new Set(codes.map((code) => statusOf[code]))].sort();
  return statuses.map((status) => codes.filter((code) => statusOf[code] === status));
}

/** Returns references to the responses of the groups, by status. */
export function errorResponses(groups: readonly Group[]): Schema {
  return Object.fromEntries(
    groups.map((group) => [statusOfGroup(group), { $ref: `#/components/responses/${nameOf(group)}` }]),
  );
}

export function componentResponses(groups: readonly Group[]): Schema {
  return Object.fromEntries(groups.map((group) => [nameOf(group), response(group)]));
}

/** Responses to a request that matches no operation. */
export const unroutedResponses: Schema = {
  ...errorResponses(groupsOf(["BAD_REQUEST", "UNAUTHORIZED", "RATE_LIMITED"])),
  "404": { ...response(["NOT_FOUND"]), headers: { ...commonHeaders, Allow: allow } },
};

function statusOfGroup([first = "INTERNAL"]: Group): number {
  return statusOf[first];
}

/** `INTERNAL` and `INTEGRITY` become `InternalOrIntegrity`. */
function nameOf(group: Group): string {
  const pascal = (code: string) => code.replace(/_?([A-Z])([A-Z]*)/g, (_, first, rest) => first + rest.toLowerCase());
  return group.map(pascal).join("Or");
}

function response(codes: Group): Schema {
  const more = codes.flatMap((code) => headersOf[code] ?? []);
  const base = codes.every((code) => statusOf[code] < 500) ? "Refusal" : "Failure";
  return {
    description: codes.map((code) => `\`${code}\`: ${meanings[code]}.`).join(" "),
    headers: { ...commonHeaders, ...headersNamed(more) },
    content: {
      "application/json": {
        schema: { ...schemaNamed(base), properties: { code: { enum: codes } } },
        examples: Object.fromEntries(codes.map((code) => [code, { value: { ...examples[code], code } }])),
      },
    },
  };
}

function headersNamed(names: readonly string[]): Schema {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function header(description: string, example: string): Schema {
  return { description, required: true, schema: { type: "string" }, example };
}

function constant(description: string, value: string): Schema {
  return { description, required: true, schema: { type: "string", const: value }, example: value };
}
