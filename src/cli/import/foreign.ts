/** JSON of programs that `import` does not read, by what only their exports have: as plain JSON, half of it would be lost. */
import { isObject, objectsIn, type UnknownObject } from "../kit/prompts/input.js";

type Recognizes = (json: UnknownObject, list: readonly UnknownObject[]) => boolean;

const has = (json: UnknownObject | undefined, ...names: readonly string[]) => {
  return json !== undefined && names.every((name) => name in json);
};

const foreign: Readonly<Record<string, Recognizes>> = {
  Aegis: (json) => has(json, "version", "header", "db"),
  FreeOTP: (json) => has(json, "tokens", "tokenOrder"),
  "2FAS": (json) => has(json, "services", "schemaVersion"),
  Enpass: (json) =>
    objectsIn(json["items"]).some((item) => has(item, "template_type") || has(item, "fields", "uuid", "title")),
  "Proton Pass": (json) => has(json, "vaults", "userId") || has(json, "vaults", "encrypted", "version"),
  Dashlane: (json) => has(json, "AUTHENTIFIANT"),
  Blur: (json) => has(json, "dntmeExport"),
  "Firefox (logins.json, encrypted)": (json) => has(json, "logins", "nextId"),
  "Padlock, encrypted": (json) => has(json, "cipher", "ct", "salt"),
  "LastPass Authenticator": (json) =>
    has(json, "accounts") && has(objectsIn(json["accounts"])[0], "secret", "issuerName"),
  Keeper: (json) => has(json, "records") && has(objectsIn(json["records"])[0], "title"),
  Stratum: (json) => has(json, "Authenticators", "Categories"),
  "Proton Authenticator": (json) => has(json, "version", "entries"),
  "Duo Mobile": (_, [first]) => has(first, "otpGenerator", "accountType"),
  andOTP: (_, [first]) => has(first, "secret", "type", "algorithm"),
  Passman: (_, [first]) => has(first, "label", "credential_id") || has(first, "label", "otp", "custom_fields"),
};

/** Returns the name of the program whose export a JSON document is; null for a document of another program. */
export function foreignProgram(json: unknown): string | null {
  const [object, list] = [isObject(json) ? json : {}, objectsIn(json)];
  return Object.keys(foreign).find((program) => foreign[program]?.(object, list)) ?? null;
}
