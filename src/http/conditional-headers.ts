/** Conditional headers (RFC 9110, sections 13.1.1 and 13.1.2). */
import type { IncomingMessage } from "node:http";
import { VaultError } from "../errors.js";
import type { Condition, Tags } from "../vault/conditions.js";

/** @throws VaultError BAD_REQUEST for a malformed header */
export function conditionOf({ headers }: IncomingMessage): Condition {
  return { ifMatch: ifMatch(headers["if-match"]), ifNoneMatch: ifNoneMatch(headers["if-none-match"]) };
}

/** As `conditionOf`, for a read: its If-None-Match. */
export function unlessTagged({ headers }: IncomingMessage): Tags | null {
  return ifNoneMatch(headers["if-none-match"]);
}

/** Compares strongly: a weak tag matches nothing. */
function ifMatch(header: string | undefined): Tags | null {
  const tags = header === undefined ? null : entityTags(header, "If-Match");
  return tags === null || tags === "*" ? tags : tags.filter((tag) => tag.startsWith('"')).map(unquoted);
}

/** Compares weakly. */
function ifNoneMatch(header: string | undefined): Tags | null {
  const tags = header === undefined ? null : entityTags(header, "If-None-Match");
  return tags === null || tags === "*" ? tags : tags.map(unquoted);
}

/** A list may have empty elements (RFC 9110, section 5.6.1.2). A tag may contain commas. */
const list = /^[ \t]*(?:,[ \t]*)*(?:W\/)?"[!#-~\x80-\xff]*"(?:[ \t]*,(?:[ \t]*(?:W\/)?"[!#-~\x80-\xff]*")?)*[ \t]*$/;
const entityTag = /(?:W\/)?"[^"]*"/g;

function entityTags(header: string, name: string): Tags {
  if (header.trim() === "*") return "*";
  if (!list.test(header))
    throw new VaultError("BAD_REQUEST", `${name} must be * or tags in quotes, separated by commas`);
  return header.match(entityTag) ?? [];
}

function unquoted(tag: string): string {
  return tag.slice(tag.indexOf('"') + 1, -1);
}
