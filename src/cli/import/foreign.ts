/** JSON of programs that `import` does not read, by what only their exports have: as plain JSON, half of it would be lost. */
import { isObject, objectsIn, type UnknownObject } from "../kit/prompts/input.js";

type Foreign = {
  readonly program: string;
  readonly recognizes: (json: UnknownObject, list: readonly UnknownObject[]) => boolean;
};

const has = (json: UnknownObject | undefined, ...names: readonly string[]) => {
  return json !== undefined && names.every((name) => name in json);
};

const foreign: readonly Foreign[] = [
  { program: "Aegis", recognizes: (json) => has(json, "version", "header", "db") },
  { program: "FreeOTP", recognizes: (json) => has(json, "tokens", "tokenOrder") },
  { program: "2FAS", recognizes: (json) => has(json, "services", "schemaVersion") },
  {
    program: "Enpass",
    recognizes: (json) =>
      objectsIn(json["items"]).some((item) => has(item, "template_type") || has(item, "fields", "uuid", "title")),
  },
  {
    program: "Proton Pass",
    recognizes: (json) => has(json, "vaults", "userId") || has(json, "vaults", "encrypted", "version"),
  },
  { program: "Dashlane", recognizes: (json) => has(json, "AUTHENTIFIANT") },
  { program: "Blur", recognizes: (json) => has(json, "dntmeExport") },
  { program: "Firefox (logins.json, encrypted)", recognizes: (json) => has(json, "logins", "nextId") },
  { program: "Padlock, encrypted", recognizes: (json) => has(json, "cipher", "ct", "salt") },
  {
    program: "LastPass Authenticator",
    recognizes: (json) => has(json, "accounts") && has(objectsIn(json["accounts"])[0], "secret", "issuerName"),
  },
  { program: "Keeper", recognizes: (json) => has(json, "records") && has(objectsIn(json["records"])[0], "title") },
  { program: "Stratum", recognizes: (json) => has(json, "Authenticators", "Categories") },
  { program: "Proton Authenticator", recognizes: (json) => has(json, "version", "entries") },
  { program: "Duo Mobile", recognizes: (_, [first]) => has(first, "otpGenerator", "accountType") },
  { program: "andOTP", recognizes: (_, [first]) => has(first, "secret", "type", "algorithm") },
  {
    program: "Passman",
    recognizes: (_, [first]) => has(first, "label", "credential_id") || has(first, "label", "otp", "custom_fields"),
  },
];

/** Returns the name of the program whose export a JSON document is; null for a document of another program. */
export function foreignProgram(json: unknown): string | null {
  const [object, list] = [isObject(json) ? json : {}, objectsIn(json)];
  return foreign.find(({ recognizes }) => recognizes(object, list))?.program ?? null;
}
