/** Names of hosts: one form for those of bindings, of sessions and of requests, so that they can be compared. */
import { isIP } from "node:net";
import { domainToASCII } from "node:url";

const label = "[a-z0-9_](?:[a-z0-9_-]{0,62})";
/** A DNS name whose last label is not a number: getaddrinfo reads those as IPv4 addresses. */
const dnsName = new RegExp(`^(?=.{1,253}$)(?:${label}\\.)*(?!(?:\\d+|0x[0-9a-f]*)$)${label}$`);

/**
 * Returns a DNS name in lower case ASCII without the dot of the root, or an IP address in its shortest form, without
 * brackets; null for what is neither.
 */
export function canonicalHost(text: string): string | null {
  const literal = text.replace(/^\[(.*)\]$/, "$1");
  if (isIP(literal) === 4) return literal;
  if (isIP(literal) === 6) return literal.includes("%") ? null : new URL(`http://[${literal}]/`).hostname.slice(1, -1);
  if (text.includes("%")) return null; // domainToASCII would decode it
  const name = domainToASCII(text.replace(/\.$/, "")).toLowerCase();
  return dnsName.test(name) ? name : null;
}

type Authority = { readonly host: string; readonly port: number | null };

/** Reads `HOST` or `HOST:PORT`, an IPv6 address in brackets; null for anything else. */
export function readAuthority(text: string): Authority | null {
  const [, bracketed, name, digits] = /^(?:(\[[0-9a-fA-F:.]+\])|([^:/?#@\s[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = canonicalHost(bracketed ?? name ?? "");
  const port = digits === undefined ? null : Number(digits);
  return host === null || port === 0 || (port ?? 1) > 65_535 ? null : { host, port };
}
