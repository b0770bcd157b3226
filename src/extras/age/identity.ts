/** Identities of the plugin: the name of a transit key in Bech32, or no name for every key. They are no secret. */
import { bech32 } from "@scure/base";

const prefix = "age-plugin-strongroom-";

/** Returns the line for an identity file. */
export function identityText(name: string): string {
  return bech32.encode(prefix, bech32.toWords(Buffer.from(name)), false).toUpperCase();
}

/** Returns the name of the key, which is empty where the identity names none; null for another text. */
export function identityName(text: string): string | null {
  const decoded = bech32.decodeUnsafe(text, false);
  const bytes = decoded?.prefix === prefix ? bech32.fromWordsUnsafe(decoded.words) : undefined;
  return bytes ? Buffer.from(bytes).toString() : null;
}
