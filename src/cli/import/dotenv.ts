/**
 * Dotenv files, parsed as the npm package dotenv does, except that what it drops silently is an error here, with its line:
 * lines that are not an assignment, names that are set twice, a `#` inside an unquoted value, and unclosed quotes.
 *
 *   export NAME=bare value   # comment          'single', "double" and `back` quotes may span several lines
 *
 * Quoted text is literal, except for `\n` and `\r` in double quotes; a quote after a backslash closes only if no later one
 * does. Line ends are `\n`.
 */
import { CommandFailure } from "../kit/errors.js";

/** `from`, `to`: where the value stands, with its quotes, in the text without a byte order mark and with `\n` at line ends. */
export type Assignment = {
  readonly name: string;
  readonly value: string;
  /** The mark around the value; empty for a bare one. */
  readonly quote: "" | "'" | '"' | "`";
  readonly line: number;
  readonly from: number;
  readonly to: number;
};

const blank = /[^\S\n]*(?:#[^\n]*)?(?:\n|$)/y;
const start = /[^\S\n]*(?:export[^\S\n]+)?([\w.-]+)[^\S\n]*=[^\S\n]*/y;
const bare = /[^\n]*/y;

const maxNamed = 100;

/** @throws CommandFailure usage, with the name of the file, and the lines that are unclear */
export function parseDotenv(text: string, file: string): Assignment[] {
  const found = new Map<string, Assignment>();
  const problems: string[] = [];
  for (const { problem, ...assignment } of parseAssignments(text)) {
    const { name, line } = assignment;
    const earlier = found.get(name);
    const twice = earlier && ` is already set in line ${earlier.line}: remove one of the two`;
    for (const each of [problem, twice]) if (each) problems.push(`line ${line}: ${name}${each}`);
    if (name !== "") found.set(name, assignment);
  }
  if (problems.length === 0) return [...found.values()];
  const more = problems.length > maxNamed ? [`and ${problems.length - maxNamed} more`] : [];
  const rows = [...problems.slice(0, maxNamed), ...more];
  const several = `: ${problems.length} lines are unclear\n  ${rows.join("\n  ")}`;
  throw new CommandFailure("usage", `${file}${problems.length === 1 ? `, ${problems[0]}` : several}`);
}

type Line = Assignment & { readonly problem: string | null };

/** Yields the assignments, and lines that are none with an empty name. A problem follows the name in a message. */
function* parseAssignments(text: string): Generator<Line, void, void> {
  const scanner = new Scanner(text.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n"));
  while (!scanner.isAtEnd) {
    if (scanner.match(blank)) continue;
    const { line } = scanner;
    const name = scanner.match(start)?.[1];
    if (name !== undefined) yield { name, line, ...valueAt(scanner) };
    else if (scanner.match(bare))
      yield { name: "", value: "", quote: "", line, from: 0, to: 0, problem: "not NAME=value" };
    scanner.match(blank);
  }
}

function valueAt(scanner: Scanner): Omit<Line, "name" | "line"> {
  const from = scanner.at;
  const text = scanner.matchQuoted();
  if (text !== null) {
    const quote = text[0] as Line["quote"];
    return { value: unquoted(text), quote, from, to: scanner.at, problem: null };
  }
  const value = withoutComment(scanner.match(bare)?.[0] ?? "");
  return { value, quote: "", from, to: from + value.length, problem: problemOfBare(value) };
}

class Scanner {
  readonly #source: string;
  #at = 0;
  line = 1;

  constructor(source: string) {
    this.#source = source;
  }

  get at(): number {
    return this.#at;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#source.length;
  }

  /** Passes what a sticky pattern matches here. */
  match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#source);
    if (found !== null) this.#pass(found[0]);
    return found;
  }

  /** Passes a quoted text behind which its line has nothing but a comment, and returns it with its quotes. */
  matchQuoted(): string | null {
    const to = this.#endOfQuoted();
    if (to === null) return null;
    const text = this.#source.slice(this.#at, to);
    this.#pass(text);
    return text;
  }

  /** Not one pattern for the whole text: V8 overflows its stack after some 8 million characters. */
  #endOfQuoted(): number | null {
    const quote = this.#source[this.#at];
    if (quote === undefined || !/['"`]/.test(quote)) return null;
    let end = this.#source.indexOf(quote, this.#at + 1);
    while (end >= 0 && this.#source[end - 1] === "\\") end = this.#source.indexOf(quote, end + 1);
    if (end < 0) end = this.#source.lastIndexOf(quote);
    while (end > this.#at && !this.#isBlank(end + 1)) end = this.#source.lastIndexOf(quote, end - 1);
    return end > this.#at ? end + 1 : null;
  }

  #isBlank(at: number): boolean {
    blank.lastIndex = at;
    return blank.test(this.#source);
  }

  #pass(text: string): void {
    this.#at += text.length;
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) this.line++;
  }
}

function unquoted(text: string): string {
  const inner = text.slice(1, -1);
  return text.startsWith('"') ? inner.replace(/\\n/g, "\n").replace(/\\r/g, "\r") : inner;
}

/** A comment has no line or paragraph separator in it. */
function withoutComment(text: string): string {
  const from = Math.max(0, text.lastIndexOf("\u2028"), text.lastIndexOf("\u2029"));
  const comment = text.slice(from).search(/(?:^|\s)#/);
  return (comment < 0 ? text : text.slice(0, from + comment)).trim();
}

function problemOfBare(value: string): string | null {
  const isReference = /^strongroom:\/\/\S*$/.test(value); // its # names a field
  if (value.includes("#") && !isReference) return ": is the # a comment? Put the value in quotes";
  return /^['"`]/.test(value) ? ": the quotes are not closed, or text follows them" : null;
}

/**
 * Ways to write a value, each with the values that the dotenv package, `import` and a shell that sources the file all read
 * unchanged. DANGER: a shell executes backticks and, between double quotes, `$` and `\\`; zsh replaces `=NAME` without quotes,
 * at the start or after a colon, by the path of a program.
 */
const spellings: readonly { readonly holds: RegExp; readonly spell: (value: string) => string }[] = [
  { holds: /^(?!=|.*:=)[\w./:@%+,=-]*$/, spell: (value) => value },
  { holds: /^[^'\r\0]*[^'\r\0\\]$/, spell: (value) => `'${value}'` },
  { holds: /^[^"\\$`\r\0]*$/, spell: (value) => `"${value}"` },
];

/** Returns one assignment, or null when not all of them read the value unchanged. */
export function dotenvLine(name: string, value: string): string | null {
  const spelling = spellings.find(({ holds }) => holds.test(value));
  return spelling ? `${name}=${spelling.spell(value)}\n` : null;
}
