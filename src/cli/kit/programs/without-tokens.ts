/** Environment of child programs: without any variable that holds a token of ours, whatever its name. */
import { readFileSync, statSync } from "node:fs";
import { readOneSetting } from "../../../config/settings.js";
import { homeAt } from "../../../files/home.js";
import { readSettingsFile } from "../args/settings-file.js";

/** Where the command's token is, as its flags say. */
export type TokenPlace = { readonly home?: string | undefined; readonly tokenFile?: string | undefined };

/** Values of generated tokens; see src/access/token-value.ts. */
const generated = /sr[tc]_[A-Za-z0-9_-]{43}/;

/** A token that an owner has chosen is looked for inside of values from this length on; a shorter one is a value by chance. */
const leastPart = 16;

/**
 * Returns the variables whose values hold no token: neither a generated token nor this command's own.
 * `vault-env`, for one, puts the root token into VAULT_TOKEN.
 */
export function withoutTokens(environment: NodeJS.ProcessEnv, place: TokenPlace = {}): NodeJS.ProcessEnv {
  const tokens = currentTokens(environment, place);
  const isToken = (text: string) =>
    generated.test(text) ||
    tokens.some((token) => (token.length < leastPart ? text.trim() === token : text.includes(token)));
  const holdsToken = (value: string) => readings(value).some(isToken);
  const kept = Object.entries(environment).filter(([, value]) => value === undefined || !holdsToken(value));
  return Object.fromEntries(kept);
}

/** The value as it is, and what is in it in the spellings of URLs, of Basic authentication, and in hexadecimal. */
function readings(value: string): string[] {
  const unescaped = value.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => Buffer.from(hex, "hex").toString("latin1"));
  const encoded = [value, unescaped].flatMap((text) => [
    ...(text.match(/[A-Za-z0-9+/_-]{20,}/g) ?? []).map((run) => Buffer.from(run, "base64")),
    ...(text.match(/(?:[0-9A-Fa-f]{2}){20,}/g) ?? []).map((run) => Buffer.from(run, "hex")),
  ]);
  return [value, unescaped, ...encoded.map((bytes) => bytes.toString("latin1"))];
}

/** Returns the variables for a program of our own, which uses the token: it keeps ours. */
export function withOwnTokenOnly(environment: NodeJS.ProcessEnv, place: TokenPlace = {}): NodeJS.ProcessEnv {
  const { STRONGROOM_TOKEN: token } = environment;
  return { ...withoutTokens(environment, place), ...(token !== undefined && { STRONGROOM_TOKEN: token }) };
}

function currentTokens(environment: NodeJS.ProcessEnv, { home, tokenFile }: TokenPlace): string[] {
  const path = readOneSetting("home", home, environment);
  const file = readSettingsFile(path);
  const files = [
    () => homeAt(path).token,
    () => readOneSetting("tokenFile", tokenFile, environment),
    () => readOneSetting("tokenFile", undefined, environment),
    () => readOneSetting("tokenFile", undefined, {}, file),
  ];
  const found = [environment["STRONGROOM_TOKEN"], ...files.map((file) => fileContent(file))];
  return found.filter((token) => token !== undefined && token !== "").map((token) => String(token));
}

/** Returns undefined for what cannot be read. A pipe can be read only once, and the client has done so. */
function fileContent(file: () => string | null): string | undefined {
  try {
    const name = file();
    return name !== null && statSync(name).isFile() ? readFileSync(name, "utf8").trim() : undefined;
  } catch {
    return undefined;
  }
}
