/**
 * Search for values in bytes that may have them encoded: escapes of JSON, URLs, HTML and quoted-printable, base64 at any
 * alignment and with line ends in it, hex, UTF-16, and several of them around each other.
 */

/** Bytes as latin1 text, and for each of them where it comes from in the original bytes. */
type View = { readonly text: string; readonly from: Uint32Array; readonly to: Uint32Array };

export type Range = { readonly start: number; readonly end: number };

/** A form of a value. `slack`: how many characters at either end also hold bits of it. */
type Needle = { readonly text: string; readonly slack: number };
export type Needles = { readonly plain: readonly Needle[]; readonly hex: readonly Needle[] };

/** Escapes around each other that are taken off, and most views that are examined. */
const maxDepth = 3;
const maxViews = 64;

/** Returns the forms in which a value is searched. */
export function buildNeedles(values: readonly Buffer[]): Needles {
  const variants = values.flatMap((value) => {
    const wide = Buffer.from(value.toString("utf8"), "utf16le");
    return [value, wide, Buffer.from(wide).swap16()];
  });
  const plain = variants.map((bytes) => ({ text: bytes.toString("latin1"), slack: 0 }));
  const base64 = variants.flatMap((bytes) => base64Forms(bytes).map((text) => ({ text, slack: 2 })));
  return {
    plain: [...plain, ...base64].map(({ text, slack }) => ({ text: folded(text.replace(/\s/g, "")), slack })),
    hex: variants.map((bytes) => ({ text: bytes.toString("hex"), slack: 0 })),
  };
}

/** Returns the value's base64 at each alignment, without characters that depend on the bytes around it. */
function base64Forms(value: Buffer): string[] {
  return [0, 1, 2].map((shift) => {
    const encoded = Buffer.concat([Buffer.alloc(shift), value]).toString("base64");
    return encoded.replace(/.?=*$/, "").slice(shift === 0 ? 0 : shift + 1);
  });
}

/**
 * Returns where the values are; null for bytes with too many escapes in them to tell.
 * @param isCut whether the end was cut off: a value's start there counts
 */
export function findEncoded(bytes: Buffer, needles: Needles, isCut: boolean): readonly Range[] | null {
  const first = bytes.toString("latin1");
  const places = Uint32Array.from({ length: first.length + 1 }, (_, i) => i);
  const views: View[] = [{ text: first, from: places, to: places.subarray(1) }];
  const seen = new Set([first]);
  const ranges: Range[] = [];
  let level: readonly View[] = views;
  for (let depth = 0; level.length > 0; depth++) {
    for (const view of level) ranges.push(...findInView(view, bytes, needles, isCut));
    if (depth === maxDepth) break;
    const next = level.flatMap((view) =>
      decoders.flatMap(({ pattern, decode }) => replaced(view, pattern, decode) ?? []),
    );
    level = next.filter(({ text }) => !seen.has(text) && seen.add(text));
    if (seen.size > maxViews) return null;
  }
  return ranges;
}

function findInView(view: View, bytes: Buffer, { plain, hex }: Needles, isCut: boolean): Range[] {
  const close = replaced(view, /\s+/g, () => "") ?? view;
  const folding = { ...close, text: folded(close.text) };
  const found = plain.flatMap((needle) => findNeedle(folding, needle, bytes, isCut));
  if (!isCut && !hexDump.test(close.text)) return found;
  const lower = { ...close, text: close.text.toLowerCase() };
  const digits = replaced(lower, /0x|[:,-]/g, () => "") ?? lower;
  return [...found, ...hex.flatMap((needle) => findNeedle(digits, needle, bytes, isCut))];
}

const hexDump = /(?:(?:0x)?[0-9a-f]{2}[:,-]{0,2}){16}/i;

function findNeedle({ text, from, to }: View, { text: wanted, slack }: Needle, bytes: Buffer, isCut: boolean): Range[] {
  const found: Range[] = [];
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + 1)) {
    const range = { start: from[at] ?? 0, end: to[at + wanted.length - 1] ?? 0 };
    found.push(slack === 0 ? range : widened(range, bytes, slack));
  }
  const start = isCut ? startAtEnd(text, wanted) : -1;
  return start === -1 ? found : [...found, { start: from[start] ?? 0, end: bytes.length }];
}

const minStart = 4;

/** An escape may be cut too: this many characters at the end need not belong to the value. */
const maxEscape = 12;

/** Returns where the value's start stands at the text's end; -1 where it does not. */
function startAtEnd(text: string, wanted: string): number {
  const prefix = wanted.slice(0, minStart);
  const earliest = Math.max(0, text.length - wanted.length - maxEscape);
  for (let at = text.indexOf(prefix, earliest); at !== -1; at = text.indexOf(prefix, at + 1)) {
    const rest = text.slice(at, at + wanted.length);
    const surely = rest.slice(0, Math.max(minStart, rest.length - maxEscape));
    if (wanted.startsWith(surely)) return at;
  }
  return -1;
}

function widened({ start, end }: Range, bytes: Buffer, slack: number): Range {
  const isBase64 = (at: number) => /[A-Za-z0-9+/_=-]/.test(String.fromCharCode(bytes[at] ?? 0));
  let [first, last] = [start, end];
  while (first > start - slack && isBase64(first - 1)) first--;
  while (last < end + slack && isBase64(last)) last++;
  return { start: first, end: last };
}

/** Ignores case, and which of its two alphabets base64 is written in. */
function folded(text: string): string {
  return text.toLowerCase().replaceAll("-", "+").replaceAll("_", "/");
}

type Decoder = { readonly pattern: RegExp; readonly decode: (found: string) => string };

const shortEscapes: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", "0": "\0" };

const entities: Readonly<Record<string, string>> = {
  ...{ amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " ", sol: "/", bsol: "\\", plus: "+", equals: "=" },
  ...{
    percnt: "%",
    num: "#",
    dollar: "$",
    excl: "!",
    ast: "*",
    lpar: "(",
    rpar: ")",
    comma: ",",
    period: ".",
    colon: ":",
  },
  ...{ semi: ";", quest: "?", commat: "@", lsqb: "[", lbrack: "[", rsqb: "]", rbrack: "]", Hat: "^", lowbar: "_" },
  ...{ grave: "`", lcub: "{", lbrace: "{", verbar: "|", vert: "|", rcub: "}", rbrace: "}", Tab: "\t", NewLine: "\n" },
  ...{ hyphen: "-", dash: "-", tilde: "~" },
};

const decoders: readonly Decoder[] = [
  {
    pattern: /(?:\\u[0-9a-f]{4})+|\\u\{[0-9a-f]{1,6}\}|\\x[0-9a-f]{2}|\\[^ux\n]/gi,
    decode: (found) => {
      if (found.startsWith("\\u{")) return utf8(codePoint(Number.parseInt(found.slice(3, -1), 16)));
      if (/^\\u/i.test(found)) {
        return utf8(found.replace(/\\u(....)/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))));
      }
      if (/^\\x/i.test(found)) return String.fromCharCode(Number.parseInt(found.slice(2), 16));
      return shortEscapes[found.charAt(1)] ?? found.slice(1);
    },
  },
  { pattern: /%[0-9a-f]{2}|\+/gi, decode: (found) => (found === "+" ? " " : byte(found.slice(1))) },
  { pattern: /%[0-9a-f]{2}/gi, decode: (found) => byte(found.slice(1)) },
  {
    pattern: /&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,8});?/gi,
    decode: (found) => {
      const name = found.slice(1).replace(/;$/, "");
      if (!name.startsWith("#")) return entities[name] ?? entities[name.toLowerCase()] ?? found;
      return utf8(codePoint(/^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1))));
    },
  },
  { pattern: /=[0-9a-f]{2}|=\r?\n/gi, decode: (found) => (/\n/.test(found) ? "" : byte(found.slice(1))) },
];

function byte(hex: string): string {
  return String.fromCharCode(Number.parseInt(hex, 16));
}

function codePoint(code: number): string {
  return code <= 0x10ffff ? String.fromCodePoint(code) : "";
}

function utf8(text: string): string {
  return Buffer.from(text).toString("latin1");
}

/** Returns the view with each match replaced by bytes, which come from the whole match; null without a match. */
function replaced({ text, from, to }: View, pattern: RegExp, meaning: (match: string) => string): View | null {
  const pieces: string[] = [];
  const [starts, ends] = [new Uint32Array(text.length), new Uint32Array(text.length)]; // no meaning is longer than its escape
  let [done, length] = [0, 0];
  const keep = (end: number) => {
    pieces.push(text.slice(done, end));
    starts.set(from.subarray(done, end), length);
    ends.set(to.subarray(done, end), length);
    length += end - done;
  };
  for (const { 0: match, index } of text.matchAll(pattern)) {
    keep(index);
    done = index + match.length;
    const bytes = meaning(match);
    pieces.push(bytes);
    starts.fill(from[index] ?? 0, length, length + bytes.length);
    ends.fill(to[done - 1] ?? 0, length, length + bytes.length);
    length += bytes.length;
  }
  if (done === 0) return null;
  keep(text.length);
  return { text: pieces.join(""), from: starts.subarray(0, length), to: ends.subarray(0, length) };
}
