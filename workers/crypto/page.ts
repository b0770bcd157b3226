/**
 * Owns pages: some list entries that follow each other, sealed as one. The vault keeps them in memory, never on disk, so
 * that a list which is asked for again opens one box for all of them instead of one for each.
 *
 * AAD: "strongroom v1 page" ‖ vault id (16). A page says itself which paths it is about.
 */

import { concat, scratchOf, utf8 } from "../memory.js";
import type { Bytes } from "../protocol.js";
import type { SealingKey } from "./blob.js";
import { open, seal } from "./xaes.js";

const label = utf8("strongroom v1 page");

export function sealPage(key: SealingKey, entries: Bytes): Bytes {
  const boxes = seal(key.masterKey, [{ plaintext: entries, aad: () => pageAad(key) }]);
  return concat(boxes.flat());
}

/** The entries; null when the page is not of this vault, or damaged. */
export function openPage(key: SealingKey, page: Uint8Array): Bytes | null {
  const [entries = null] = open(key.masterKey, [{ box: page, aad: pageAad(key) }]);
  return entries && concat([entries]);
}

function pageAad({ vaultId }: SealingKey): Uint8Array {
  return scratchOf(label, vaultId);
}
