/** Parameters and members of requests, against the table of what becomes of each. */
import { goFlag } from "../../workers/go-values.js";
import { type Members, memberRefusal, type VaultOperation, vaultMembers } from "../../workers/vault-members.js";
import { VaultError } from "../errors.js";
import type { Endpoint } from "../http/endpoint.js";
import { parseQuery } from "../http/routes.js";

/** A row of the table: an operation without a row in `vaultMembers` does not compile. */
export type VaultEndpoint = Endpoint<VaultOperation>;

/** The members of a body that holds no secret value. */
export type BodyMembers = { readonly [name: string]: unknown };

/** Returns the members of a body; without a body there are none. @throws VaultError BAD_REQUEST for what is refused */
export function parseBodyMembers(body: Uint8Array, operation: VaultOperation): BodyMembers {
  const members = parse(body);
  checkMembers(vaultMembers[operation], members);
  return members;
}

/** @throws VaultError BAD_REQUEST */
export function checkMembers(known: Members, members: BodyMembers): void {
  for (const [name, value] of Object.entries(members)) {
    const problem = memberRefusal(known, name, value);
    if (problem !== null) throw new VaultError("BAD_REQUEST", problem);
  }
}

/** Makes a row check the query of requests whose parameters are not in their body. */
export function checkingQuery(row: VaultEndpoint): VaultEndpoint {
  if (/^(?:POST|PATCH) /.test(row.at)) return row;
  const known = vaultMembers[row.operation];
  const query = (text: string) => {
    checkMembers(known, Object.fromEntries(parseQuery(text, [...known.keys()])));
    return row.query?.(text);
  };
  return { ...row, query };
}

/** DANGER: the parser's own error would quote the body. */
function parse(body: Uint8Array): BodyMembers {
  if (body.length === 0) return {};
  try {
    const parsed: unknown = JSON.parse(new TextDecoder("utf8", { fatal: true }).decode(body));
    if (parsed === null) return {};
    if (typeof parsed === "object" && !Array.isArray(parsed)) return { ...parsed };
  } catch {
    // refused as any other body that is not an object
  }
  throw new VaultError("BAD_REQUEST", "failed to parse JSON input");
}

/** Returns a whole number of the query; without one, or with an empty text, 0. @throws VaultError BAD_REQUEST */
export function numberIn(query: string, name: string): number {
  const text = parseQuery(query, [name]).get(name) || "0";
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new VaultError("BAD_REQUEST", `the parameter ${name} must be a whole number`);
}

/** The part of a list that its query asks for: what sorts behind `after`, at most `limit`; 0 is all. */
export type Page = { readonly after: string; readonly limit: number };

/** @throws VaultError BAD_REQUEST */
export function readPage(query: string): Page {
  const { after = "", limit = "" } = Object.fromEntries(parseQuery(query, ["after", "limit"]));
  const isUnlimited = /^-\d+$/.test(limit); // what OpenBao's command line sends for all
  return { after, limit: isUnlimited ? 0 : numberIn(query, "limit") };
}

export function namesAfter({ after, limit }: Page, names: readonly string[]): readonly string[] {
  const following =
    after === "" ? names : names.filter((name) => Buffer.compare(Buffer.from(name), Buffer.from(after)) > 0);
  return limit === 0 ? following : following.slice(0, limit);
}

/** Returns true for the `list` parameter of a GET that is a LIST. */
export function asksForList(text: string | undefined): boolean {
  return text !== undefined && goFlag(text) === true;
}
