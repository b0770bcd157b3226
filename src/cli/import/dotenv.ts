/**
 * Dotenv files, parsed as the npm package dotenv does, except that what it drops silently is an error here, with its line:
 * lines that are not an assignment, names that are set twice, a `#` inside an unquoted value, and unclosed quotes.
 *
 *   export NAME=bare value   # comment          'single', "double" and `back` quotes may span several lines
 *
 * Quoted text is literal, except for `\n` and `\r` in double quotes; a quote after a backslash closes only if no later one
 * does. Line ends are `\n`.
 */
import { CommandFailure } from "../lib/errors.js";

type Assignment = { readonly name: string; readonly value: string; readonly line: number };

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
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(source);
    at += found?.[0].length ?? 0;
    lines += found?.[0].split("\n").slice(1).length ?? 0;
    return found;
  };
  while (at < source.length) {
    if (match(blank)) continue;
    const line = lines;
    const fail = (problem: string) => new CommandFailure("usage", `${file}, line ${line}: ${problem}`);
    const name = match(start)?.[1];
    if (name === undefined) throw fail("not NAME=value");
    const value = textOf(match(quoted)) ?? bareValue(match(bare)?.[0] ?? "", fail);
    const earlier = found.get(name);
    if (earlier) throw fail(`${name} is already set in line ${earlier.line}: remove one of the two`);
    found.set(name, { name, value, line });
    match(blank);
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
  const isReference = /^strongroom:\/\/\S*$/.test(value); // its # names a field
  if (value.includes("#") && !isReference) throw fail("is the # a comment? Put the value in quotes");
  if (/^['"`]/.test(value)) throw fail("the quotes are not closed, or text follows them");
  return value;
}

/**
 * Ways to write a value, each with the values that the dotenv package, `import` and a shell that sources the file all read
 * unchanged. DANGER: a shell executes backticks and, between double quotes, `$` and `\\`.
 */
const spellings: readonly { readonly holds: RegExp; readonly spell: (value: string) => string }[] = [
  { holds: /^[\w./:@%+,=-]*$/, spell: (value) => value },
  { holds: /^[^'\r\0]*[^'\r\0\\]$/, spell: (value) => `'${value}'` },
  { holds: /^[^"\\$`\r\0]*$/, spell: (value) => `"${value}"` },
];

/** Returns one assignment, or null when not all of them read the value unchanged. */
export function dotenvLine(name: string, value: string): string | null {
  const spelling = spellings.find(({ holds }) => holds.test(value));
  return spelling ? `${name}=${spelling.spell(value)}\n` : null;
}
