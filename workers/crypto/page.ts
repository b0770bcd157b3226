/**
 * Pages: consecutive list entries sealed as one box. The vault caches them in memory, never on disk, so that a repeated
 * list opens one box a page instead of one an entry: 1 ms of CPU instead of 10 for 1,000 entries.
 *
 * AAD: "strongroom v1 page" ‖ vault id (16). The entries contain their paths.
 */
import { concat, scratchOf, utf8 } from "../memory.js";
import type { Bytes } from "../owned-bytes.js";
import { openBoxes, type SealingKey } from "./blob.js";
import { seal } from "./xaes.js";

const label = utf8("strongroom v1 page");

export function sealPage(key: SealingKey, entries: Bytes): Bytes {
  const boxes = seal(key.masterKey, [{ plaintext: entries, aad: () => pageAad(key) }]);
  return concat(boxes.flat());
}

/** Returns the entries, or null when the page is damaged or of another vault. */
export function openPage(key: SealingKey, page: Uint8Array): Bytes | null {
  const [entries = null] = openBoxes(key, [{ box: page, aad: pageAad(key) }]);
  return entries && concat([entries]);
}

function pageAad({ vaultId }: SealingKey): Uint8Array {
  return scratchOf(label, vaultId);
}
