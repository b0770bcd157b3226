/** Bodies that bind a secret to a host. They carry no secret. */
import { readComputed } from "../../workers/binding-members.js";
import type { Binding, ComputedMembers } from "../../workers/protocol.js";
import { parseJsonMembers } from "../access/token-request.js";
import { VaultError } from "../errors.js";
import { durationSeconds } from "./approvals.js";
import { canonicalHost } from "./host-name.js";

const maxItems = 64;
const maxTextBytes = 256;
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/;

/** The broker sets these itself, or they decide about the message. */
const reserved = new Set([
  "host",
  "content-length",
  "transfer-encoding",
  "connection",
  "upgrade",
  "expect",
  "te",
  "trailer",
]);

/** @throws VaultError BAD_REQUEST that names the rule */
export function readBinding(body: Uint8Array): Binding {
  const members = parseJsonMembers(body);
  const { methods = null, paths = null, ask = "never", name = null } = members;
  return {
    ...readCredential(members),
    host: readHost(members["host"]),
    port: readPort(members["port"] ?? 443),
    methods: methods === null ? null : readList("methods", methods, isMethod),
    paths: paths === null ? null : readList("paths", paths, isPattern),
    ask: readAsk(ask),
    private: readFlag(members["private"] ?? false),
    name: name === null ? null : readName(name),
  };
}

type Members = Readonly<Record<string, unknown>>;

/** Reads how the credential is made, and where it stands. */
function readCredential(members: Members): ComputedMembers & Pick<Binding, "header" | "format" | "basic"> {
  const computed = readComputed(members);
  if (typeof computed === "string") throw invalid(computed);
  const { header = "authorization", format = "Bearer {}", basic = null } = members;
  const hasHeader = members["format"] !== undefined || members["header"] !== undefined;
  if (basic !== null && hasHeader) throw invalid("basic goes without header and format: it sets authorization");
  if (computed.sigv4 !== undefined && (basic !== null || hasHeader))
    throw invalid("sigv4 goes without basic, header and format: it signs the head");
  const placed = { ...computed, header: readHeader(header) };
  if (computed.sigv4 !== undefined) return { ...placed, format: null, basic: null };
  if (basic !== null) return { ...placed, format: null, basic: readBasic(basic) };
  return { ...placed, format: readFormat(format), basic: null };
}

function readHost(host: unknown): string {
  const found = typeof host === "string" ? canonicalHost(host) : null;
  if (found === null) throw invalid("host must be a DNS name or an IP address, without scheme, port or wildcard");
  return found;
}

function readPort(port: unknown): number {
  if (Number.isInteger(port) && (port as number) >= 1 && (port as number) <= 65_535) return port as number;
  throw invalid("port must be a whole number from 1 to 65535");
}

function readHeader(header: unknown): string {
  const name = typeof header === "string" && token.test(header) ? header.toLowerCase() : "";
  if (name === "" || reserved.has(name))
    throw invalid("header must be the name of a header that may carry a credential");
  return name;
}

function readFormat(format: unknown): string {
  if (typeof format === "string" && /^[ -~]{2,256}$/.test(format) && format.split("{}").length === 2) return format;
  throw invalid("format must be printable ASCII with {} once, where the value goes");
}

function readBasic(user: unknown): string {
  if (typeof user === "string" && /^[ -9;-~]{0,128}$/.test(user)) return user;
  throw invalid("basic must be a user name of at most 128 printable ASCII characters, without a colon");
}

function isMethod(text: string): boolean {
  return token.test(text) && text === text.toUpperCase() && text !== "CONNECT";
}

function isPattern(text: string): boolean {
  return /^\/[!"$->@-~]*$/.test(text) && Buffer.byteLength(text) <= maxTextBytes;
}

function readList(name: string, list: unknown, isItem: (text: string) => boolean): string[] {
  const isValid = (item: unknown): item is string => typeof item === "string" && isItem(item);
  if (Array.isArray(list) && list.length > 0 && list.length <= maxItems && list.every(isValid))
    return [...new Set(list)];
  const what =
    name === "methods"
      ? "methods in upper case, such as GET"
      : "paths that begin with a slash, where * stands within a segment and ** across";
  throw invalid(`${name} must list 1 to ${maxItems} ${what}`);
}

function readAsk(ask: unknown): string {
  if (typeof ask === "string" && (["never", "request", "session"].includes(ask) || durationSeconds(ask) !== null))
    return ask;
  throw invalid("ask must be never, request, session, or a duration such as 10m");
}

function readFlag(flag: unknown): boolean {
  if (typeof flag === "boolean") return flag;
  throw invalid("private must be true or false");
}

function readName(name: unknown): string {
  if (typeof name === "string" && /^[a-z0-9][a-z0-9._-]{0,63}$/.test(name)) return name;
  throw invalid("name must be 1 to 64 of a-z, 0-9, dot, dash and underscore, and begin with a letter or digit");
}

function invalid(problem: string): VaultError {
  return new VaultError("BAD_REQUEST", problem);
}
