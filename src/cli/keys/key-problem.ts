/** Check of a typed key before it is sent: which of its groups are mistyped. */
import { keyBytes, readKeyText } from "../../../workers/crypto/key-text.js";

/** Returns what is wrong with the text of a key, or null when it is right or a passphrase. */
export function keyProblem(text: Uint8Array): string | null {
  const key = new Uint8Array(new ArrayBuffer(keyBytes));
  const wrong = readKeyText(text, key) ?? [];
  key.fill(0);
  if (wrong.length === 0) return null;
  const groups = wrong.length === 1 ? `group ${wrong[0]}` : `groups ${wrong.join(", ")}`;
  return `the key is mistyped: compare ${groups} with your copy (SRK is before group 1)`;
}
