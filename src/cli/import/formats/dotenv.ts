/**
 * Owns dotenv files, read and written as the npm package dotenv does, but for one thing: what that package drops in
 * silence is an error here, which says the line. Those are lines that are no assignment, a name that is set twice, a `#`
 * inside a bare value, and quotes that do not close.
 *
 *   export NAME=bare value   # comment          'single', "double" and `back` quotes may hold several lines
 *
 * Between quotes everything stands for itself, but for `\n` and `\r` between double ones; a quote behind a backslash does
 * not close, where a later one does. Line ends are `\n`.
 */
import { CommandFailure } from "../../session/exit-codes.js";

export type Assignment = { readonly name: string; readonly value: string; readonly line: number };

const blank = /[^\S\n]*(?:#[^\n]*)?(?:\n|$)/y;
const start = /[^\S\n]*(?:export[^\S\n]+)?([\w.-]+)[^\S\n]*=[^\S\n]*/y;
const quoted = /(?:'((?:\\'|[^'])*)'|"((?:\\"|[^"])*)"|`((?:\\`|[^`])*)`)(?=[^\S\n]*(?:#[^\n]*)?(?:\n|$))/y;
const bare = /[^\n]*/y;

/** @throws CommandFailure usage, with the name of the file and the line */
export function parseDotenv(text: string, file: string): Assignment[] {
  const source = text.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  const found = new Map<string, Assignment>();
  let at = 0;
  let lines = 1;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(source);
    at += match?.[0].length ?? 0;
    lines += match?.[0].split("\n").slice(1).length ?? 0;
    return match;
  };
  while (at < source.length) {
    if (take(blank)) continue;
    const line = lines;
    const fail = (problem: string) => new CommandFailure("usage", `${file}, line ${line}: ${problem}`);
    const name = take(start)?.[1];
    if (name === undefined) throw fail("it is not NAME=value");
    const value = textOf(take(quoted)) ?? bareValue(take(bare)?.[0] ?? "", fail);
    const earlier = found.get(name);
    if (earlier) throw fail(`${name} has a value already, in line ${earlier.line}: take one of the two out`);
    found.set(name, { name, value, line });
    take(blank);
  }
  return [...found.values()];
}

function textOf(match: RegExpExecArray | null): string | null {
  if (match === null) return null;
  const [, single, double, back] = match;
  return single ?? back ?? (double ?? "").replace(/\\n/g, "\n").replace(/\\r/g, "\r");
}

function bareValue(text: string, fail: (problem: string) => CommandFailure): string {
  const value = text.replace(/(?:^|\s)#.*$/, "").trim();
  if (value.includes("#")) throw fail("a # is in the value or begins a comment: put the value into quotes");
  if (/^['"`]/.test(value)) throw fail("the quotes do not close, or something stands behind them");
  return value;
}

/** Ways to write a value, the most usual first; each with what it can hold. */
const spellings: readonly { readonly holds: RegExp; readonly spell: (value: string) => string }[] = [
  { holds: /^[\w./:@%+,=-]*$/, spell: (value) => value },
  { holds: /^(?:[^'\r]*[^'\r\\])?$/, spell: (value) => `'${value}'` },
  { holds: /^[^`\r]*[^`\r\\]$/, spell: (value) => `\`${value}\`` },
  { holds: /^[^"\\]*$/, spell: (value) => `"${value.replaceAll("\n", "\\n").replaceAll("\r", "\\r")}"` },
  { holds: /^[^\s#'"`](?:[^#\r\n'"`]*[^\s#'"`])?$/, spell: (value) => value },
];

/** One line, or null when the value cannot be written in a way that dotenv reads back as it was. */
export function dotenvLine(name: string, value: string): string | null {
  const spelling = spellings.find(({ holds }) => holds.test(value));
  return spelling ? `${name}=${spelling.spell(value)}\n` : null;
}
