/** Owns the answers that endpoints have in common: the error codes with their meanings, and every header. */
import { type ErrorCode, statusOf } from "../errors.js";
import { type Schema, schemaNamed } from "./json-schema.js";

/** As the README's table has them, too. */
export const meanings: Readonly<Record<ErrorCode, string>> = {
  BAD_REQUEST: "the path, query, body or HTTP itself is not valid; a foreign `Host` or `Origin`",
  UNAUTHORIZED: "the token is missing or wrong; the passphrase is wrong",
  VAULT_LOCKED: "unlock (or init) the vault first",
  NOT_FOUND: "no such secret, endpoint or method (`Allow` lists the methods)",
  ALREADY_EXISTS: "the vault is already initialized",
  RATE_LIMITED: "too many failures, or too many passphrases at once; `Retry-After` says how long to wait",
  INTERNAL: "a failure inside; the log has more under the answer's `requestId`",
  INTEGRITY: "this secret's file is damaged, moved or foreign; all others go on working",
  UNAVAILABLE: "shutting down, or the disk cannot take the write; nothing is half-written",
};

const requestId = "5f0c2c6e-7a3c-4b52-9a52-0a3f6f1d2b11";

const examples: Readonly<Record<ErrorCode, Schema>> = {
  BAD_REQUEST: { error: "the body must be one JSON object in UTF-8" },
  UNAUTHORIZED: { error: "the bearer token is missing or wrong", credential: "token" },
  VAULT_LOCKED: { error: "the vault is locked: unlock it first" },
  NOT_FOUND: { error: "there is no secret at app/db/password" },
  ALREADY_EXISTS: { error: "the vault is already initialized: unlock it, or send force: true" },
  RATE_LIMITED: { error: "too many wrong tokens from this address: wait before you try again" },
  INTERNAL: { error: "something failed inside the server: its log has more under this request id", requestId },
  INTEGRITY: {
    error: "the stored secret at app/db/password is damaged, or was moved here from elsewhere",
    requestId,
  },
  UNAVAILABLE: { error: "the server is shutting down", requestId },
};

const onAll: Readonly<Record<string, Schema>> = {
  "Cache-Control": constant("Nobody may keep an answer.", "no-store"),
  "Content-Security-Policy": header("Against browsers that would run an answer.", "default-src 'self'"),
  "Cross-Origin-Opener-Policy": constant("Against other sites' windows.", "same-origin"),
  "Cross-Origin-Resource-Policy": constant("Against other sites' pages.", "same-origin"),
  "Origin-Agent-Cluster": constant("Asks browsers for a process of its own.", "?1"),
  "Referrer-Policy": constant("A path must not travel to other sites.", "no-referrer"),
  "X-Content-Type-Options": constant("JSON is JSON.", "nosniff"),
  "X-DNS-Prefetch-Control": constant("Names in an answer are not looked up.", "off"),
  "X-Download-Options": constant("For old browsers: a download is not opened.", "noopen"),
  "X-Frame-Options": constant("No other site's frame may show an answer.", "SAMEORIGIN"),
  "X-Permitted-Cross-Domain-Policies": constant("No plug-in policies.", "none"),
  "X-XSS-Protection": constant("Turns a harmful filter of old browsers off.", "0"),
};

const onSome = {
  "Retry-After": {
    description: "Seconds to wait before the next attempt.",
    required: true,
    schema: { type: "integer", minimum: 1 },
    example: 300,
  },
  "WWW-Authenticate": constant("The scheme that is wanted.", "Bearer"),
  Allow: { ...header("The methods that the path has, where it exists.", "GET, PUT, DELETE"), required: false },
} satisfies Readonly<Record<string, Schema>>;

const headersOf: Partial<Record<ErrorCode, keyof typeof onSome>> = {
  UNAUTHORIZED: "WWW-Authenticate",
  RATE_LIMITED: "Retry-After",
};

export const componentHeaders: Schema = { ...onAll, ...onSome };

export const commonHeaders: Schema = headersNamed(Object.keys(onAll));

/** Codes of one status: what one response stands for. */
export type Group = readonly ErrorCode[];

export function groupsOf(codes: readonly ErrorCode[]): Group[] {
  const statuses = [...new Set(codes.map((code) => statusOf[code]))].sort();
  return statuses.map((status) => codes.filter((code) => statusOf[code] === status));
}

/** References to the groups' responses, by status. */
export function errorResponses(groups: readonly Group[]): Schema {
  return Object.fromEntries(
    groups.map((group) => [statusOfGroup(group), { $ref: `#/components/responses/${nameOf(group)}` }]),
  );
}

export function componentResponses(groups: readonly Group[]): Schema {
  return Object.fromEntries(groups.map((group) => [nameOf(group), response(group)]));
}

/** What is answered to a request that no operation matches. */
export const unroutedResponses: Schema = {
  ...errorResponses(groupsOf(["BAD_REQUEST", "UNAUTHORIZED", "RATE_LIMITED"])),
  "404": { ...response(["NOT_FOUND"]), headers: { ...commonHeaders, ...headersNamed(["Allow"]) } },
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
