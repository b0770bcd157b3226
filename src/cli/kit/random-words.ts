/** Random words from the EFF's long list, drawn without bias. */
import { randomInt } from "node:crypto";
import type { Bytes } from "./io.js";

export type RandomValue = {
  readonly bytes: Bytes;
  /** Entropy, rounded down. */
  readonly bits: number;
};

export async function randomWords(count: number, separator: string): Promise<RandomValue> {
  const { dictionary } = await import("@zxcvbn-ts/language-common");
  const list = dictionary["diceware-common"];
  const text = Array.from({ length: count }, () => list[randomInt(list.length)]).join(separator);
  const bytes = new Uint8Array(new ArrayBuffer(Buffer.byteLength(text)));
  new TextEncoder().encodeInto(text, bytes);
  return { bytes, bits: entropyBits(count, list.length) };
}

export function entropyBits(length: number, choices: number): number {
  return Math.floor(length * Math.log2(choices));
}
