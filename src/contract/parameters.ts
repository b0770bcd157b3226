/** Parameters of the contract. */
import { maxPathBytes, maxVersion } from "../../workers/body-schemas.js";
import { tokenName } from "../access/token-record.js";
import type { Schema } from "./json-schema.js";

const segment = "(?!\\.{1,2}(?:/|$))[^/\\\\\\u0000-\\u001F\\u007F-\\u009F]+";

/** Of the decoded path; what it does not cover is in the description. */
const pathPattern = `^${segment}(?:/${segment}){0,31}$`;

export const parameters: Schema = {
  path: {
    name: "path",
    in: "path",
    required: true,
    description:
      "The secret's path, percent-encoded: up to 32 segments separated by slashes and 1024 bytes of UTF-8. A slash may be " +
      "literal or `%2F`. Case-sensitive; Unicode is normalized to NFC. Empty segments, `.`, `..`, control characters, " +
      "backslashes, and white space at either end of a segment are refused. A segment must fit into a file " +
      "name of 255 bytes: 248, where every byte of UTF-8 except `a` to `z`, digits, `-`, `_` and `.` counts as 3.",
    schema: { type: "string", minLength: 1, maxLength: maxPathBytes, pattern: pathPattern },
    example: "app/db/password",
  },
  name: {
    name: "name",
    in: "path",
    required: true,
    description: "The token's name.",
    schema: { type: "string", pattern: tokenName.source },
    example: "ci",
  },
  id: {
    name: "id",
    in: "path",
    required: true,
    description: "The id of a key, from the list of keys.",
    schema: { type: "string" },
    example: "k7f3q9zx",
  },
  version: {
    name: "version",
    in: "query",
    description: "Number of the version to read. Omitted: list all.",
    schema: { type: "integer", minimum: 1, maximum: maxVersion },
    example: 2,
  },
  "If-Match": {
    name: "If-Match",
    in: "header",
    description:
      "Tags in quotes, separated by commas, or `*`: any. Nothing is changed, and the response is 412, unless the secret exists with one of them.",
    schema: { type: "string" },
    example: '"n0O6NdgaeP0QMXWP"',
  },
  "If-None-Match": {
    name: "If-None-Match",
    in: "header",
    description:
      "Tags in quotes, separated by commas, or `*`: any. If the secret exists with one of them, the response to a read is 304, and to a change 412: with `*`, a put only creates.",
    schema: { type: "string" },
    example: "*",
  },
  reader: {
    name: "reader",
    in: "query",
    description:
      "The process that will read the files, as its process id, a colon, and on Linux the boot id, a space, and field 22 of " +
      "/proc/PID/stat. With it, a server whose disk is full or read-only returns the vault's own directory with " +
      "`direct`, and refuses writes until that process has ended.",
    schema: { type: "string", pattern: "^[1-9][0-9]{0,9}:[ -~]{0,100}$" },
    example: "4711:6f3c9b4e-0d6f-4b0f-9d4c-2f1d5b7c8a90 123456",
  },
  require: {
    name: "require",
    in: "query",
    description: "The state without which the response has status 503, with the same body.",
    schema: { type: "string", enum: ["unlocked"] },
    example: "unlocked",
  },
  prefix: {
    name: "prefix",
    in: "query",
    description:
      "Only paths that start with this text, which need not end at a slash; omitted or empty: all. Percent-encode it: `caf%C3%A9`, not `café`.",
    schema: { type: "string" },
    example: "app/",
  },
  after: {
    name: "after",
    in: "query",
    description: "Only paths after this one, which need not exist: the `next` of the previous page, percent-encoded.",
    schema: { type: "string" },
    example: "app/db/password",
  },
  afterRecord: {
    name: "after",
    in: "query",
    description: "Only records with a higher number than this; omitted: from the oldest one that is kept.",
    schema: { type: "integer", minimum: 0, maximum: 999_999_999_999_999 },
    example: 4711,
  },
  recordLimit: {
    name: "limit",
    in: "query",
    description: "Most records to return. Omitted: 100.",
    schema: { type: "integer", minimum: 1, maximum: 1000 },
    example: 100,
  },
  limit: {
    name: "limit",
    in: "query",
    description: "Most entries to return; `next` is present when more follow. Omitted: all.",
    schema: { type: "integer", minimum: 1, maximum: 1000 },
    example: 100,
  },
};
