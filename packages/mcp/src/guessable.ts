/**
 * Judgement whether a value could be guessed. The rules look at the value alone, so they are strict: a random value that they
 * do not recognize costs its owner the output, and a value that a person made up
 * would tell an agent when a guess is right.
 */

/** Fewest characters of a random part: fewer hold less than 100 bits. */
const minLength = 20;

/** Only this many characters at a part's end are examined: what is fixed in a token, such as `ghp_`, is at its start. */
const examined = 64;

/** Returns the parts of a value that cannot be guessed; none where the whole value could be. */
export function randomParts(value: string): readonly string[] {
  const words = value.split(/\s+/).filter((word) => word.length >= minLength);
  const runs = words.flatMap((word) => word.match(/[A-Za-z0-9+/_=-]{20,}/g) ?? []);
  return [...new Set([...runs.filter(isRandom), ...words.filter(isRandomWithSymbols)])];
}

function isRandom(part: string): boolean {
  const inner = decoded(part);
  if (inner !== null) return randomParts(inner).length > 0;
  const text = part.slice(-examined);
  const shape = textShape(text);
  if (shape.distinct < 9 || !isUnordered(text)) return false;
  if (/^[0-9a-f-]+$/i.test(text)) return text.length >= 28 && shape.digits > 0 && shape.changes >= 0.25;
  return shape.distinct >= 12 && isMixed(text.length, shape);
}

/** Three kinds of characters make a shorter part random than two do. */
function isMixed(length: number, { upper, lower, digits, changes }: Shape): boolean {
  if (upper > 1 && lower > 1 && digits > 0) return changes >= (length < 28 ? 0.3 : 0.25);
  return length >= 26 && digits > 2 && changes >= (length < 32 ? 0.3 : 0.25);
}

/** Returns whether a word looks like one of a password manager. An address with a password in it changes less between kinds of characters. */
function isRandomWithSymbols(word: string): boolean {
  const { distinct, changes, upper, lower, digits } = textShape(word.slice(-examined));
  const kinds = [upper, lower, digits].filter((count) => count > 1).length;
  return distinct >= 14 && kinds > 1 && changes >= 0.5 && isUnordered(word) && !/:\/\/|[{}]/.test(word);
}

type Shape = {
  readonly upper: number;
  readonly lower: number;
  readonly digits: number;
  readonly distinct: number;
  /** Share of the characters before which the kind changes, but from a capital to a small letter, as in words. */
  readonly changes: number;
};

function textShape(text: string): Shape {
  const kinds = Array.from(text, characterKind);
  const count = (wanted: string) => kinds.filter((kind) => kind === wanted).length;
  const changes = kinds.filter((kind, i) => {
    const before = kinds[i - 1] ?? kind;
    return kind !== before && !(before === "A" && kind === "a");
  });
  return {
    upper: count("A"),
    lower: count("a"),
    digits: count("0"),
    distinct: new Set(text).size,
    changes: changes.length / text.length,
  };
}

function characterKind(character: string): string {
  if (/[a-z]/.test(character)) return "a";
  if (/[A-Z]/.test(character)) return "A";
  return /\d/.test(character) ? "0" : "#";
}

/** Whether neither pairs of characters repeat, nor digits or letters count up or down, nor letters stand as on a keyboard. */
function isUnordered(text: string): boolean {
  const pairs = new Set(Array.from(text.slice(1), (second, i) => `${text[i]}${second}`));
  if (pairs.size < (text.length - 1) * 0.8) return false;
  return ![/\d/g, /[a-z]/gi].some((kind) => isSequence((text.match(kind) ?? []).join("").toLowerCase()));
}

const orders = ["0123456789", "abcdefghijklmnopqrstuvwxyz", "qwertyuiopasdfghjklzxcvbnm", "qazwsxedcrfvtgbyhnujmikolp"];

function isSequence(characters: string): boolean {
  if (characters.length < 4) return false;
  const complete = orders.filter((order) => Array.from(characters).every((one) => order.includes(one)));
  return complete.some((order) => {
    const places = Array.from(characters, (one) => order.indexOf(one));
    const near = places.slice(1).filter((place, i) => Math.abs(place - (places[i] ?? 0)) <= 1);
    return near.length >= (characters.length - 1) * 0.8;
  });
}

/** Returns the text that a part encodes in hex or base64; null for what is no encoded text. */
function decoded(part: string): string | null {
  const encoding = /^(?:[0-9a-f]{2})+$/i.test(part) ? "hex" : "base64";
  const bytes = Buffer.from(part, encoding);
  return bytes.length > 0 && bytes.every((byte) => byte === 9 || byte === 10 || (byte >= 32 && byte < 127))
    ? bytes.toString("latin1")
    : null;
}
