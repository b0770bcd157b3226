/** Endpoint of checks: what is weak, equal, breached, or to be searched for, without a value. */
import { assessParts } from "../../workers/protocol.js";
import { visibleRanges } from "../access/rights.js";
import { parseJsonMembers } from "../access/token-request.js";
import { read } from "../audit/record.js";
import { VaultError } from "../errors.js";
import type { CheckQuery } from "../vault/check.js";
import { fields } from "./body.js";
import { bytes, endpoint, none } from "./endpoint.js";
import { recordablePrefix } from "./secrets.js";

const maxBodyBytes = 16 * 1024;
const keyPattern = /^[A-Za-z0-9+/_-]{43}=?$/;
const mostEntries = 1000;

// biome-ignore format: what is decided for an endpoint stands in lines that can be compared
export const checkRows = [
  endpoint({
    operation: "check", at: "POST /v1/check", scope: "get", guard: "unlocked", audit: read("check"),
    subject: none, body: fields(maxBodyBytes), conditional: false, reads: true,
    async handle({ vault, body, caller, permit, recorded }) {
      const query = readCheckRequest(body);
      recorded.prefix = recordablePrefix(query.prefix);
      const { pieces, count } = await vault.secrets.check({ ...query, ...visibleRanges(caller), permit });
      recorded.count = count;
      return bytes(...pieces);
    },
  }),
];

/** @throws VaultError BAD_REQUEST that names the rule */
function readCheckRequest(body: Uint8Array): CheckQuery {
  const { key, parts = ["strength", "reuse"], prefix = "", after = "", limit = mostEntries } = parseJsonMembers(body);
  if (typeof key !== "string" || !keyPattern.test(key)) throw invalid("key must be 32 random bytes in base64");
  if (!Array.isArray(parts) || parts.length === 0 || !parts.every((part) => assessParts.includes(part)))
    throw invalid(`parts must list some of ${assessParts.join(", ")}`);
  if (typeof prefix !== "string" || typeof after !== "string") throw invalid("prefix and after must be texts");
  if (typeof limit !== "number" || !Number.isInteger(limit) || limit < 1 || limit > mostEntries)
    throw invalid(`limit must be a whole number from 1 to ${mostEntries}`);
  const chosen = new Uint8Array(new ArrayBuffer(32));
  chosen.set(Buffer.from(key, "base64").subarray(0, 32));
  return { key: chosen, parts, prefix: prefix.normalize("NFC"), after: after.normalize("NFC"), limit };
}

function invalid(rule: string): VaultError {
  return new VaultError("BAD_REQUEST", `the request is invalid: ${rule}`);
}
