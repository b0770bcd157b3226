/** Changes of a settings file's text that keep its comments and all other members. */
import { parse, stringify } from "smol-toml";
import { CommandFailure } from "../errors.js";
import { printable } from "../output.js";

type FileText = { readonly path: string; readonly text: string; readonly members: readonly string[] };

/** `value`: as the text of its flag. Returns the file's text with the member's line replaced, or added at its end. @throws CommandFailure usage */
export function withMember(file: FileText, member: string, value: string): string {
  const line = stringify({ [member]: /^\d{1,15}$/.test(value) ? Number(value) : value }).trim();
  const lines = splitLines(file.text);
  const [first, count] = file.members.includes(member) ? findMember(lines, file, member) : [lines.length, 0];
  const text = joined(lines.toSpliced(first, count, line));
  if (memberNames(text)?.includes(member)) return text;
  throw changeThere(file, member); // the last line is inside of a table
}

/** @throws CommandFailure usage */
export function withoutMember(file: FileText, member: string): string {
  const lines = splitLines(file.text);
  return joined(lines.toSpliced(...findMember(lines, file, member)));
}

function splitLines(text: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

function joined(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join("");
}

/** Returns the first line and the number of lines that are this member alone: a value may have several. */
function findMember(lines: readonly string[], file: FileText, member: string): [number, number] {
  for (let first = 0, end = 1; end <= lines.length; end += 1) {
    const names = memberNames(lines.slice(first, end).join("\n"));
    if (names === null) continue; // the value has more lines
    if (names.length === 1 && names[0] === member) return [first, end - first];
    first = end;
  }
  throw changeThere(file, member);
}

function changeThere({ path }: FileText, member: string): CommandFailure {
  return new CommandFailure("usage", `${member} has no lines of its own in ${printable(path)}: change it there`);
}

/** Returns null for what is no TOML. */
function memberNames(text: string): readonly string[] | null {
  try {
    return Object.keys(parse(text));
  } catch {
    return null;
  }
}
