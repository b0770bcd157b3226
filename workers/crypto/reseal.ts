/** Sealing anew of a blob whose master key is being rotated. */
import { concat } from "../memory.js";
import type { Bytes } from "../owned-bytes.js";
import { boxesOf, metadataAad, openBoxes, openVersionsMetadata, type SealingKey, valueAad } from "./blob.js";
import { type SealedVersion, splitBlob } from "./blob-structure.js";
import { nonceBytes, sealAnew } from "./xaes.js";

/** `blob`: null when nothing was sealed anew. `intact`: all that the old key sealed opened. */
type ResealedBlob = { readonly blob: Bytes | null; readonly intact: boolean };

/**
 * Seals anew, under the master key, all versions in a blob that the old key sealed. The copy that it returns has the same
 * lengths and tags; what is damaged stays as it is.
 */
export function resealBlob(key: SealingKey, path: string, blob: Uint8Array): ResealedBlob {
  const split = splitBlob(blob);
  if (split === null) return { blob: null, intact: false };
  const versions = [split.present, ...split.past];
  const current = openVersionsMetadata({ ...key, oldKey: null }, path, versions);
  const others = versions.filter((_, i) => current[i] === null);
  if (key.oldKey === null || others.length === 0) return { blob: null, intact: split.isWhole && others.length === 0 };
  const older = { ...key, masterKey: key.oldKey, oldKey: null };
  const copy = concat([blob]);
  const put = (box: Uint8Array, offset: number) => copy.set(box, offset - blob.byteOffset);
  const results = others.map((version) => resealVersion(key, older, path, version, put));
  const intact = split.isWhole && results.every((result) => result === "whole");
  return { blob: results.every((result) => result === "nothing") ? null : copy, intact };
}

/** Returns what opened under the old key and is sealed anew. `put` gets the offsets of the boxes in their buffer. */
function resealVersion(
  key: SealingKey,
  older: SealingKey,
  path: string,
  { metadata, value }: SealedVersion,
  put: (box: Uint8Array, offset: number) => void,
): "whole" | "metadata" | "nothing" {
  const [described, content] = openBoxes(older, boxesOf(older, path, { metadata, value }));
  if (!described) return "nothing";
  const box = sealAnew(key.masterKey, metadata, { plaintext: described, aad: () => metadataAad(key, path) });
  put(box, metadata.byteOffset);
  if (!content) return "metadata";
  const aad = () => valueAad(key, path, box.subarray(0, nonceBytes));
  put(sealAnew(key.masterKey, value, { plaintext: content, aad }), value.byteOffset);
  return "whole";
}
