/** Schemas of responses about secrets and their versions. */
import { secretTypes } from "../../workers/body-schemas.js";
import { count, list, message, object, ok, type Schema, schemaNamed, text, time } from "./json-schema.js";

const path = text("The secret's path in its canonical form (Unicode NFC).", "app/db/password");
const metadata = schemaNamed("Metadata");
const createdAt = time("When the secret was first stored at this path.");
const updatedAt = time("When the secret was last stored; never goes backwards.");
const version: Schema = {
  type: "integer",
  minimum: 1,
  description: "Number of the version: 1 at creation, one more with each put that changes something.",
  examples: [3],
};
const etag = text(
  "Tag of this state of the secret, for If-Match and If-None-Match, where it stands in quotes.",
  "n0O6NdgaeP0QMXWP",
);

export const secretSchemas = {
  Metadata: object(
    "Metadata stored with the value; a field that was not supplied is absent.",
    {
      type: { ...text("Kind of secret.", "password"), enum: secretTypes },
      description: text("Description for people.", "the application's database"),
    },
    ["type", "description"],
  ),
  Stored: object("Confirms that a secret was stored.", {
    ok,
    path,
    bytes: count("The value's length in bytes of UTF-8."),
    metadata,
    version,
    etag,
  }),
  Secret: object("A secret with its value.", {
    path,
    value: text("The secret value.", "s3cr3t"),
    metadata,
    createdAt,
    updatedAt,
    version,
    etag,
  }),
  SecretEntry: object("A secret in a list, without its value.", {
    path,
    metadata,
    createdAt,
    updatedAt,
    version,
    etag,
  }),
  SecretVersion: object("A version of a secret, without its value.", {
    metadata,
    createdAt,
    updatedAt: time("When this version was last stored."),
    version,
    etag,
  }),
  SecretHistory: object(
    "The versions of a secret.",
    {
      path,
      versions: list("Newest first, the present included.", schemaNamed("SecretVersion")),
      damaged: count("How many earlier versions cannot be decrypted; they are not among the versions."),
    },
    ["damaged"],
  ),
  SecretList: object(
    "Secrets in ascending order of the UTF-8 bytes of their paths.",
    {
      entries: list("Matching secrets; empty when nothing matches.", schemaNamed("SecretEntry")),
      next: text("Present when more secrets follow: continue with `after` set to this path.", "app/db/password"),
      damaged: list("Paths whose stored metadata cannot be decrypted; they are not among the entries.", path),
    },
    ["next", "damaged"],
  ),
  Deleted: object("Confirms a deletion.", { ok, path, message }),
} satisfies Readonly<Record<string, Schema>>;
