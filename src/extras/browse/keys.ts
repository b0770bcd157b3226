/** Keys of a terminal in raw mode: characters, named keys, and bracketed pastes as one key each. */
import { StringDecoder } from "node:string_decoder";

/** `text`: what a character key or a paste would write, on one line. */
export type Key = { readonly name: KeyName; readonly text: string };

type KeyName =
  | "text"
  | "paste"
  | "enter"
  | "escape"
  | "backspace"
  | "up"
  | "down"
  | "page up"
  | "page down"
  | "home"
  | "end"
  | "ctrl-c"
  | "ctrl-l"
  | "ctrl-u"
  | "ctrl-z"
  | "other";

const named: Readonly<Record<string, KeyName>> = {
  "\r": "enter",
  "\n": "enter",
  "\u007f": "backspace",
  "\b": "backspace",
  "\u0003": "ctrl-c",
  "\u000c": "ctrl-l",
  "\u0015": "ctrl-u",
  "\u001a": "ctrl-z",
  "\u000e": "down",
  "\u0010": "up",
  "[A": "up",
  "[B": "down",
  OA: "up",
  OB: "down",
  "[5~": "page up",
  "[6~": "page down",
  "[H": "home",
  "[F": "end",
  OH: "home",
  OF: "end",
  "[1~": "home",
  "[4~": "end",
};

const escapeKey = "\u001b";
const pasteBegins = `${escapeKey}[200~`;
const pasteEnds = `${escapeKey}[201~`;
/** A control sequence (ECMA-48) without its escape, as arrow and function keys send it. */
const sequence = /^(?:\[[0-?]*[ -/]*[@-~]|O[@-~])/;
const unfinishedSequence = /^(?:$|\[[0-?]*[ -/]*$|O$)/;

/** Splits what a terminal sends into keys, wherever the reads cut it. */
export class KeyDecoder {
  readonly #decoder = new StringDecoder("utf8");
  #rest = "";

  /** Whether an escape has come that may be the key, or the begin of a sequence. */
  get isWaiting(): boolean {
    return this.#rest.startsWith(escapeKey) && !this.#rest.startsWith(pasteBegins);
  }

  take(bytes: Buffer): Key[] {
    this.#rest += this.#decoder.write(bytes);
    const keys: Key[] = [];
    for (let key = this.#next(); key !== null; key = this.#next()) keys.push(key);
    return keys;
  }

  /** Returns the keys that were waited for, when nothing more comes. */
  flush(): Key[] {
    if (!this.isWaiting) return [];
    const [, ...typed] = this.#rest;
    this.#rest = "";
    return [{ name: "escape", text: "" }, ...typed.map(parseKey)];
  }

  #next(): Key | null {
    if (this.#rest === "") return null;
    if (this.#rest.startsWith(pasteBegins)) return this.#paste();
    if (!this.#rest.startsWith(escapeKey))
      return this.#cut(String.fromCodePoint(this.#rest.codePointAt(0) ?? 0), parseKey);
    const escaped = this.#rest.slice(escapeKey.length);
    const [found] = sequence.exec(escaped) ?? [];
    if (found !== undefined) return this.#cut(escapeKey + found, () => ({ name: named[found] ?? "other", text: "" }));
    if (unfinishedSequence.test(escaped)) return null;
    return this.#cut(escapeKey, () => ({ name: "escape", text: "" }));
  }

  #paste(): Key | null {
    const end = this.#rest.indexOf(pasteEnds);
    if (end === -1) return null;
    const text = this.#rest.slice(pasteBegins.length, end).replace(/\p{Cc}+/gu, " ");
    this.#rest = this.#rest.slice(end + pasteEnds.length);
    return { name: "paste", text: text.trim() };
  }

  #cut(taken: string, asKey: (taken: string) => Key): Key {
    this.#rest = this.#rest.slice(taken.length);
    return asKey(taken);
  }
}

function parseKey(character: string): Key {
  const name = named[character] ?? (/\p{Cc}/u.test(character) ? "other" : "text");
  return { name, text: name === "text" ? character : "" };
}
