/**
 * Text of a generated key: `SRK-` and 13 groups of 5 letters of Crockford's base32 (no I, L, O, U), which together spell
 * 256 bits. The fifth letter of a group checks it: it finds every mistyped letter, every two letters exchanged, and
 * groups in the wrong order. Imports nothing, so that the command line can say which group is wrong.
 */

export const keyBytes = 32;
const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const prefix = "SRK";
const groups = 13;
const dataLetters = 4;
const groupLetters = dataLetters + 1;
export const keyTextLength = prefix.length + groups * (groupLetters + 1);

/** Shorter or longer texts have too much missing or added to be a key; a passphrase may also begin with `SRK-`. */
const fewestLetters = 52;
const mostLetters = 80;

const dash = 0x2d;

/** The value of each letter in either case, I and L as 1, O as 0; -1 for all others. */
const values = Array.from({ length: 128 }, (_, code) => {
  const letter = String.fromCharCode(code).toUpperCase();
  return alphabet.indexOf({ I: "1", L: "1", O: "0" }[letter] ?? letter);
});

/** Writes a key's text into `target`, `keyTextLength` bytes. */
export function writeKeyText(key: Uint8Array, target: Uint8Array): void {
  let at = 0;
  for (const letter of prefix) target[at++] = letter.charCodeAt(0);
  for (let group = 0; group < groups; group++) {
    target[at++] = dash;
    let check = group;
    for (let i = 0; i < dataLetters; i++) {
      const value = fiveBits(key, (group * dataLetters + i) * 5);
      check ^= weighted(value, i);
      target[at++] = alphabet.charCodeAt(value);
    }
    target[at++] = alphabet.charCodeAt(check);
  }
}

/**
 * Reads a key's text into `key`, 32 bytes. Returns the numbers of its wrong groups, from 1, none when it is right; or null
 * when the text is no key's, but a passphrase.
 */
export function readKeyText(text: Uint8Array, key: Uint8Array): readonly number[] | null {
  if (!isKeyText(text)) return null;
  const wrong = new Set<number>();
  let [count, sum] = [0, 0];
  for (const byte of text.subarray(prefix.length)) {
    if (!isLetter(byte)) continue; // a dash
    const value = letterValue(byte);
    const [group, place] = [Math.floor(count / groupLetters), count % groupLetters];
    sum = (place === 0 ? group : sum) ^ weighted(value, place);
    if (place < dataLetters) putFiveBits(key, (group * dataLetters + place) * 5, value);
    else if (sum !== 0) wrong.add(Math.min(group + 1, groups));
    count++;
  }
  if (count !== groups * groupLetters) wrong.add(Math.min(groups, 1 + Math.floor(count / groupLetters)));
  return [...wrong];
}

/** Whether a text has the form of a key's, mistyped or not. */
export function isKeyText(text: Uint8Array): boolean {
  let count = -prefix.length;
  for (const byte of text) {
    if (count < 0 ? (byte & ~0x20) !== prefix.charCodeAt(count + prefix.length) : !isLetter(byte) && byte !== dash)
      return false;
    if (count < 0 || byte !== dash) count++;
  }
  return count >= fewestLetters && count <= mostLetters;
}

function isLetter(byte: number): boolean {
  return letterValue(byte) >= 0;
}

/** Returns the five bits of a letter, given by its ASCII code; -1 for any other character. */
export function letterValue(code: number): number {
  return values[code] ?? -1;
}

/**
 * Spells bytes, a letter for five bits; zeros fill up the last one. DANGER: a string cannot be wiped, so in the key worker
 * only for bytes that are not secret.
 */
export function encodeLetters(bytes: Uint8Array): string {
  const count = Math.ceil((bytes.length * 8) / 5);
  return Array.from({ length: count }, (_, i) => alphabet[fiveBits(bytes, 5 * i)]).join("");
}

/** Five bits of the key, zeros behind its end. */
function fiveBits(key: Uint8Array, bit: number): number {
  const two = (key[bit >> 3] ?? 0) * 256 + (key[(bit >> 3) + 1] ?? 0);
  return (two >> (11 - (bit & 7))) & 31;
}

/** The bits are written in order. */
function putFiveBits(key: Uint8Array, bit: number, value: number): void {
  const two = value << (11 - (bit & 7));
  const first = bit >> 3;
  const kept = (bit & 7) === 0 ? 0 : (key[first] ?? 0);
  if (first < key.length) key[first] = kept | (two >> 8);
  if (first + 1 < key.length) key[first + 1] = two & 255;
}

/** The value times x^(place + 1) in GF(32), modulo x^5 + x^2 + 1, that of the check itself: no two places weigh the same. */
function weighted(value: number, place: number): number {
  let product = value;
  for (let times = 0; times <= place && place < dataLetters; times++)
    product = (product << 1) ^ (product & 16 ? 0x25 : 0);
  return product;
}
