/** The table of frequent words by which the key worker judges values, from zxcvbn's lists. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { type WordSlots, WordTable } from "../../workers/check/words.js";

/** More than twice the words, so that a look-up is short. */
const slotCount = 2 ** 18;

/** Few, so that requests in between hardly wait. */
const wordsAtOnce = 1_000;

/** Number of last names, the most frequent. */
const mostLastNames = 10_000;

let made: Promise<WordSlots> | null = null;

/** Returns the slots of the table, which is made at the first call, in pieces between which requests have their turn. */
export function wordSlots(): Promise<WordSlots> {
  made ??= makeSlots();
  return made;
}

async function makeSlots(): Promise<WordSlots> {
  const [common, english] = await Promise.all([import("@zxcvbn-ts/language-common"), import("@zxcvbn-ts/language-en")]);
  const slots = new Int32Array(new SharedArrayBuffer(slotCount * 2 * Int32Array.BYTES_PER_ELEMENT));
  const table = new WordTable(slots);
  const lists: readonly (readonly (string | number)[])[] = [
    common.dictionary["passwords-common"],
    english.dictionary["commonWords-en"],
    english.dictionary["firstnames-en"],
    english.dictionary["lastnames-en"].slice(0, mostLastNames),
  ];
  for (const list of lists) {
    for (const [index, word] of list.entries()) {
      const text = String(word).toLowerCase();
      if (/^[!-~]{3,24}$/.test(text)) table.add(text, index + 1);
      if (index % wordsAtOnce === 0) await nextTurn();
    }
  }
  return slots;
}
