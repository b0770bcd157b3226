/** Output of commands: text, JSON (`--json`) or nothing (`--quiet`); colour only on terminals; times and columns. */
import { styleText } from "node:util";
import type { Command } from "commander";
import displayWidth from "fast-string-width";
import type { VaultStatus } from "../../client/client.js";
import type { Io } from "./io.js";

/** Takes a message; returns it with the connection flags of the call in every command that it names. */
export type Hints = (message: string) => string;

export type OutputFlags = { readonly json?: true; readonly quiet?: true };

export function withOutput(command: Command): Command {
  return command.option("--json", "print one JSON object").option("-q, --quiet", "print only errors");
}

/** For a command that is run for its result, which `--quiet` prints too. */
export function withResult(command: Command): Command {
  return command.option("--json", "print one JSON object").option("-q, --quiet", "print only the result");
}

/** Adds the flag for a trial to a command that changes something. */
export function withDryRun(command: Command): Command {
  return command.option("--dry-run", "show what would be done, without doing it");
}

const hintsOfCalls = new WeakMap<Io, Hints>();

/** Lets the messages of a call name commands with its connection flags. */
export function setHints(io: Io, hints: Hints): void {
  hintsOfCalls.set(io, hints);
}

/** Returns a message with the connection flags of this call in the commands that it advises. */
export function withHints(io: Io, message: string): string {
  return hintsOfCalls.get(io)?.(message) ?? message;
}

/** Prints what a command has done, as JSON or as a line of text. */
export function report(io: Io, { json, quiet }: OutputFlags, done: object, text: string): void {
  if (json) printJson(io, { ok: true, ...done });
  else if (!quiet) io.stdout.write(`${wrapped(printable(withHints(io, text)), io.stdout)}\n`);
}

/** Writes a message, which ends its line, to standard error, escaped. */
export function say(io: Io, message: string): void {
  io.stderr.write(wrapped(printableLines(withHints(io, message)), io.stderr));
}

/** Says on a terminal that a list is empty; a script gets the empty list alone. */
export function sayIfEmpty(io: Io, count: number, message: string, { json, quiet }: OutputFlags): void {
  if (count === 0 && io.stdout.isTTY && !json && !quiet) say(io, `${message}\n`);
}

type Columns = { readonly isTTY?: boolean; readonly columns?: number };

/** Returns the text with its lines broken at spaces where a terminal is too narrow for them; for a file or pipe as it is. */
export function wrapped(text: string, stream: Columns): string {
  // lines that begin with two spaces are to be copied, as commands are
  return breakWideLines(text, stream, (line) => (line.startsWith("  ") ? [line] : wrapUnits(line)));
}

/** Prints lines of a list or report; what does not fit a terminal's line continues below, two columns further right. */
export function printRows(io: Io, text: string): void {
  io.stdout.write(fitted(text, io.stdout));
}

/** Returns lines of a list, a report or a help as a terminal shows them: broken at spaces, but not in a command. */
export function fitted(text: string, stream: Columns): string {
  return breakWideLines(text, stream, (line) => line.match(/ *(?:\(?strongroom(?: [^\s;,:)]+)*\S*|\S+)/g) ?? []);
}

/** @param unitsIn returns what a line must not be broken in, each with the spaces before it */
function breakWideLines(
  text: string,
  { isTTY = false, columns = 0 }: Columns,
  unitsIn: (line: string) => readonly string[],
): string {
  if (!isTTY || columns < narrowest) return text;
  return text.replace(/.+/g, (line) => (displayWidth(line) <= columns ? line : brokenLine(unitsIn(line), columns)));
}

/** Columns of a terminal below which breaking lines does not help. */
const narrowest = 20;

function brokenLine([first = "", ...units]: readonly string[], columns: number): string {
  const indent = `${/^ */.exec(first)?.[0] ?? ""}  `;
  const lines: string[] = [];
  let last = first;
  for (const unit of units) {
    if (displayWidth(last + unit) > columns) {
      lines.push(last);
      last = `${indent}${unit.trimStart()}`;
    } else last += unit;
  }
  return [...lines, last].join("\n");
}

/** Returns what a line must not be broken in, each with the spaces before it: words, and commands, which stay whole. */
function wrapUnits(line: string): readonly string[] {
  const units: string[] = [];
  let isInCommand = false; // between double spaces, or from "strongroom" to the end of the clause
  for (const [part, gap = "", word = ""] of line.matchAll(/( *)(\S+)/g)) {
    const isDelimited = gap.length > 1;
    if (isInCommand && !isDelimited) units.push(`${units.pop() ?? ""}${part}`);
    else units.push(part);
    if (isDelimited) isInCommand = !isInCommand;
    if (/^\(?strongroom$/.test(word)) isInCommand = true;
    if (/[;,:.)]$/.test(word)) isInCommand = false;
  }
  return units;
}

/** `1 byte`, `2 bytes`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** JSON leaves U+0080 to U+009F as they are, which a terminal obeys. */
export function printJson(io: Io, value: unknown): void {
  io.stdout.write(`${shownJson(JSON.stringify(value), io.stdout)}\n`);
}

/** Returns JSON that the stream can take: the same, but on a terminal without what could control it. */
export function shownJson(json: string, { isTTY }: Columns): string {
  return isTTY ? json.replace(controls, jsonEscapes) : json;
}

function jsonEscapes(character: string): string {
  const units = Array.from({ length: character.length }, (_, i) => character.charCodeAt(i));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}

/** Prints a line of a result: escaped on a terminal, as it is elsewhere. */
export function printLine(io: Io, text: string): void {
  io.stdout.write(`${io.stdout.isTTY ? printable(text) : text}\n`);
}

/** Prints a value as it is; on a terminal, ends its line. */
export function printValue(io: Io, value: Uint8Array): void {
  io.stdout.write(value);
  if (io.stdout.isTTY && value.at(-1) !== 0x0a) io.stdout.write("\n");
}

type Colour = "red" | "green" | "yellow" | "dim" | "bold" | "inverse";

export type Paint = (colour: Colour, text: string) => string;

/** Returns a function that colours text if standard output shows colours. */
export function painter({ stdout, env }: Pick<Io, "stdout" | "env">): Paint {
  const { NO_COLOR, TERM } = env;
  const plain = stdout.isTTY !== true || Boolean(NO_COLOR) || TERM === "dumb";
  return (colour, text) => (plain ? text : styleText(colour, text, { validateStream: false })); // it would ask the process's own stream
}

/** Characters that control a terminal, reorder its text, break its lines or are invisible. */
const controls = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Escapes a text so that it is one line and cannot control a terminal. */
export function printable(text: string): string {
  return text.replace(controls, (character) => {
    const digits = (character.codePointAt(0) ?? 0).toString(16);
    return `\\u{${digits}}`;
  });
}

/** Escapes a text like `printable`, but keeps its lines. */
export function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

/** Returns `14:05:09+01:00`, with the date unless it is today's: `2026-03-01 14:05:09+01:00`. */
export function localTime(time: Date): string {
  const { date, clock, zone } = localTimeParts(time);
  const shown = `${clock.slice(0, 8)}${zone}`;
  return date === localTimeParts(new Date()).date ? shown : `${date} ${shown}`;
}

/** Returns `2026-03-01 14:05+01:00`, which does not get shorter on the same day: for tables. */
export function localMinute(time: Date): string {
  const { date, clock, zone } = localTimeParts(time);
  return `${date} ${clock.slice(0, 5)}${zone}`;
}

/** Returns `2026-03-01 14:05:09.123+01:00`. */
export function localMillisecond(time: Date): string {
  const { date, clock, zone } = localTimeParts(time);
  return `${date} ${clock}${zone}`;
}

/** Returns `2026-03-01`. */
export function localDate(time: Date): string {
  return localTimeParts(time).date;
}

function localTimeParts(time: Date) {
  const offset = -time.getTimezoneOffset();
  const [date = "", clock = ""] = new Date(time.getTime() + offset * 60_000).toISOString().slice(0, -1).split("T");
  return { date, clock, zone: offset === 0 ? "Z" : formatZone(offset) };
}

function formatZone(offset: number): string {
  const minutes = Math.abs(offset);
  const [hour, minute] = [Math.floor(minutes / 60), minutes % 60].map((number) => String(number).padStart(2, "0"));
  return `${offset < 0 ? "-" : "+"}${hour}:${minute}`;
}

export { displayWidth };

/** Fills up with spaces to `width` columns. */
export function padded(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - displayWidth(text)));
}

/** Cuts to at most `width` columns, with an ellipsis at the cut. */
export function shortened(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let [kept, used] = ["", 1];
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    used += displayWidth(segment);
    if (used > width) break;
    kept += segment;
  }
  return width < 1 ? "" : `${kept.trimEnd()}…`;
}

const certificateWarningMs = 14 * 24 * 3600 * 1000;

export const certificateRemedy = "replace it and its key, which needs no restart";

/** Returns when the server's certificate ends, as "ends TIME"; null until 14 days before. */
export function certificateEndText({ certificate }: Pick<VaultStatus, "certificate">): string | null {
  if (certificate === undefined) return null;
  const left = Date.parse(certificate.endsAt) - Date.now();
  if (left > certificateWarningMs) return null;
  return `${left > 0 ? "ends" : "ended"} ${localTime(new Date(certificate.endsAt))}`;
}

/** `ls --expiring` lists what is counted here. */
export function expiringText({
  expired,
  within30Days,
}: {
  readonly expired: number;
  readonly within30Days: number;
}): string {
  if (expired + within30Days === 0) return "nothing within 30 days";
  return `${expired} expired, ${within30Days} within 30 days: strongroom ls --expiring 30d`;
}
