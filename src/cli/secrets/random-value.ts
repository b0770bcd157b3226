/** Random values: every one that the rules allow is equally likely. */
import { randomInt } from "node:crypto";

export const characterSets = {
  lower: "abcdefghijklmnopqrstuvwxyz",
  upper: "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
  digits: "0123456789",
  symbols: "!#$%&()*+,-./:;<=>?@[]^_{|}~",
  hex: "0123456789abcdef",
} as const;

export type CharacterSet = keyof typeof characterSets;

/** `bits`: the entropy, rounded down. */
export type RandomValue = { readonly bytes: Uint8Array; readonly bits: number };

/** Draws until every set has a character: `randomInt` has no bias, and redrawing the whole value adds none. */
export function randomCharacters(length: number, sets: readonly CharacterSet[]): RandomValue {
  const alphabet = [...new Set(sets.flatMap((set) => [...characterSets[set]]))].join("");
  const bytes = new Uint8Array(new ArrayBuffer(length));
  do {
    for (let at = 0; at < length; at++) bytes[at] = alphabet.charCodeAt(randomInt(alphabet.length));
  } while (!sets.every((set) => bytes.some((byte) => characterSets[set].includes(String.fromCharCode(byte)))));
  return { bytes, bits: bitsOf(length, alphabet.length) };
}

export function randomWords(count: number, separator: string, list: readonly string[]): RandomValue {
  const words = Array.from({ length: count }, () => list[randomInt(list.length)]);
  return { bytes: Buffer.from(words.join(separator)), bits: bitsOf(count, list.length) };
}

function bitsOf(length: number, choices: number): number {
  return Math.floor(length * Math.log2(choices));
}
