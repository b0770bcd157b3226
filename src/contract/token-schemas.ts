/** Schemas of client tokens, and of the requests that create and rotate them. */
import { scopes } from "../access/scopes.js";
import { tokenName as namePattern } from "../access/token-record.js";
import {
  defaultScopes,
  defaultTtlSeconds,
  maxOverlapSeconds,
  maxPaths,
  maxTtlSeconds,
} from "../access/token-request.js";
import { count, list, message, object, ok, type Schema, schemaNamed, text, timeOrNull } from "./json-schema.js";

const tokenName = text("Its name: 1 to 64 of a-z, 0-9, dot, dash, underscore; `root` is the root token's.", "ci", {
  pattern: namePattern.source,
});
const can = list("What the token can do.", {
  type: "string",
  enum: scopes,
});
const paths = list(
  "Secrets, or with a slash at the end subtrees, that it can see and change; none: all.",
  text("A path or subtree.", "app/"),
);
const shownToken = {
  name: tokenName,
  can,
  paths,
  createdAt: timeOrNull("When it was created; null for the root token."),
  expiresAt: timeOrNull("When it ends; null: never."),
  lastUsedAt: timeOrNull("When it was last used, within a minute; null: not yet, and for the root token."),
};

export const tokenRequests: Schema = {
  TokenRequest: object(
    "Body of a new token. Other fields are ignored.",
    {
      name: tokenName,
      can: { ...can, minItems: 1, default: defaultScopes },
      paths: { ...paths, maxItems: maxPaths, default: [] },
      ttlSeconds: { ...count("Seconds until it ends; 0: never."), maximum: maxTtlSeconds, default: defaultTtlSeconds },
    },
    ["can", "paths", "ttlSeconds"],
  ),
  RotationRequest: object(
    "Body of a rotation of a token. Other fields are ignored.",
    {
      overlapSeconds: {
        ...count("Seconds for which the old text stays valid."),
        maximum: maxOverlapSeconds,
        default: 0,
      },
    },
    ["overlapSeconds"],
  ),
};

export const tokenSchemas = {
  Token: object("A token without its text.", shownToken),
  NewToken: object("A token with its text, which is never shown again.", {
    ok,
    token: text("The text, for `Authorization: Bearer`.", `src_${"h7Zk".repeat(10)}h7Z`),
    ...shownToken,
  }),
  TokenList: object("The client tokens.", { tokens: list("Ascending by name.", schemaNamed("Token")) }),
  Revoked: object("Confirms that a token was revoked.", { ok, name: tokenName, message }),
};
