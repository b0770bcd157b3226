/** Bodies that start a session of a program. They carry no secret. */
import { maxPaths, maxTtlSeconds, parseJsonMembers, readPaths, readSeconds } from "../access/token-request.js";
import { VaultError } from "../errors.js";
import type { SessionRules } from "./broker.js";
import { canonicalHost } from "./host-name.js";

/** `paths` empty: every secret that is bound to a host. */
type SessionRequest = SessionRules & { readonly paths: readonly string[]; readonly ttlSeconds: number };

const defaultSeconds = 8 * 3600;

/** @throws VaultError BAD_REQUEST that names the rule */
export function readSessionRequest(body: Uint8Array): SessionRequest {
  const members = body.length === 0 ? {} : parseJsonMembers(body);
  const { paths = [], ttlSeconds = defaultSeconds, allowHosts = [], egress = "listed" } = members;
  if (egress !== "any" && egress !== "listed") throw new VaultError("BAD_REQUEST", "egress must be any or listed");
  return {
    paths: readPaths(paths),
    ttlSeconds: readSeconds("ttlSeconds", ttlSeconds, maxTtlSeconds),
    allowed: readHosts(allowHosts),
    egress,
  };
}

function readHosts(hosts: unknown): string[] {
  const found = Array.isArray(hosts) && hosts.length <= maxPaths ? hosts.map(parseHost) : [null];
  if (found.every((host) => host !== null)) return found;
  throw new VaultError("BAD_REQUEST", `allowHosts must list at most ${maxPaths} host names`);
}

function parseHost(host: unknown): string | null {
  return typeof host === "string" ? canonicalHost(host) : null;
}
