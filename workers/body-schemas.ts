/**
 * Owns what the bodies of init, unlock and put must look like, as data: the key worker compiles these schemas, and the
 * front end publishes the very same in the OpenAPI document. It imports nothing, so that both may import it.
 */

export const secretTypes = ["oauth-token", "api-key", "password", "certificate", "other"] as const;
export const maxPassphraseBytes = 1024;
export const maxDescriptionBytes = 4096;

/**
 * The keyword `text`, which stands for `type: "string"`: a well-formed string of a bounded number of UTF-8 bytes, perhaps
 * one of a few. JSON Schema counts characters, and needs a string; the key worker has bytes and never makes one.
 */
export type TextRule = { readonly min: number; readonly max: number; readonly oneOf?: readonly string[] };

/** JSON Schema, but for `text`. The largest value is a setting. */
export function bodySchemas(maxValueBytes: number) {
  const passphrase = {
    text: { min: 1, max: maxPassphraseBytes },
    description: "The vault's master passphrase.",
    examples: ["seven words that nobody else would guess"],
  };
  const force = {
    type: "boolean",
    default: false,
    description: "Make a new, empty vault although there is one; the old one is kept, whole, beside it.",
  };
  const value = {
    text: { min: 0, max: maxValueBytes },
    description: "The secret value.",
    examples: ["s3cr3t"],
  };
  const type = {
    text: { min: 0, max: 64, oneOf: secretTypes },
    description: "What kind of secret it is.",
    examples: ["password"],
  };
  const description = {
    text: { min: 0, max: maxDescriptionBytes },
    description: "What it is for, in words for people.",
    examples: ["the application's database"],
  };
  return {
    init: { type: "object", properties: { passphrase, force }, required: ["passphrase"] },
    unlock: { type: "object", properties: { passphrase }, required: ["passphrase"] },
    put: { type: "object", properties: { value, type, description }, required: ["value"] },
  } as const;
}
