/** Changes of JSON objects as bytes: merge-patch (RFC 7396), and objects without their values. Only names become strings. */
import { decodeText, scratch, totalLength, utf8, writeParts } from "../memory.js";
import { type Member, readMembers } from "./json-reader.js";
import { code, decodeString, inScratch } from "./json-string.js";

/** Deeper objects are taken as a whole: each level is read once more. */
const maxDepth = 32;

const braceOpen = code("{");
const letterN = code("n");

/** Returns the name of a member without escapes. */
export function memberName({ name }: Member): string {
  return decodeText(decodeString(name, inScratch).bytes);
}

export function isObjectText(value: Uint8Array): boolean {
  return value[0] === braceOpen;
}

export function isNullText(value: Uint8Array): boolean {
  return value[0] === letterN;
}

/** Returns the target with the patch applied, in scratch memory; null when one of them is no object. */
export function mergePatch(target: Uint8Array, patch: Uint8Array, depth = 0): Uint8Array | null {
  const [members, changes] = [readMembers(target), readMembers(patch)];
  if (members === null || changes === null) return null;
  const merged = new Map(members.map((member) => [memberName(member), member]));
  for (const change of changes) {
    const name = memberName(change);
    if (isNullText(change.value)) merged.delete(name);
    else merged.set(name, { name: change.name, value: mergedValue(merged.get(name)?.value, change.value, depth) });
  }
  return written([...merged.values()]);
}

function mergedValue(before: Uint8Array | undefined, change: Uint8Array, depth: number): Uint8Array {
  if (!isObjectText(change) || depth === maxDepth) return change;
  const target = before !== undefined && isObjectText(before) ? before : empty;
  return mergePatch(target, change, depth + 1) ?? change;
}

const empty = utf8("{}");

/** Returns the object with null in the place of every value, of objects down to `depth` (0: all) their members. */
export function withoutValues(object: Uint8Array, depth: number, level = 1): Uint8Array {
  const members = readMembers(object) ?? [];
  const isLast = level === maxDepth || level === depth;
  const shown = members.map(({ name, value }) => {
    const isShown = isObjectText(value) && !isLast;
    return { name, value: isShown ? withoutValues(value, depth, level + 1) : nothing };
  });
  return written(shown);
}

const nothing = utf8("null");

function written(members: readonly Member[]): Uint8Array {
  const parts = ["{", ...members.flatMap(({ name, value }, i) => [i > 0 ? ',"' : '"', name, '":', value]), "}"];
  const object = scratch(totalLength(parts));
  writeParts(object, parts);
  return object;
}
