/** Owns the contract's parameters. */
import type { Schema } from "./json-schema.js";

export const parameters: Schema = {
  path: {
    name: "path",
    in: "path",
    required: true,
    description:
      "The secret's path, percent-encoded: up to 32 segments with slashes between them and 1024 bytes of UTF-8. A slash " +
      "may stand as it is or as `%2F`. Letters' case counts; Unicode is brought to NFC. Empty segments, `.`, `..`, control " +
      "characters, backslashes, and white space at a segment's ends are refused.",
    schema: { type: "string", minLength: 1, maxLength: 1024 },
    example: "app/db/password",
  },
  prefix: {
    name: "prefix",
    in: "query",
    description: "Only paths that begin with this, wherever it ends; left out or empty: all.",
    schema: { type: "string" },
    example: "app/",
  },
  after: {
    name: "after",
    in: "query",
    description: "Only paths that come after this one, which need not exist: the `next` of the page before.",
    schema: { type: "string" },
    example: "app/db/password",
  },
  limit: {
    name: "limit",
    in: "query",
    description: "At most so many entries; the answer has `next` where more follow. Left out: all.",
    schema: { type: "integer", minimum: 1, maximum: 1000 },
    example: 100,
  },
};
