/** Output of commands: text, JSON (`--json`) or nothing (`--quiet`); colour only on terminals. */
import { styleText } from "node:util";
import type { Command } from "commander";

/** The values of the flags of `withOutput`. */
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

/** Prints what a command has done, as JSON or as a line of text. */
export function report({ json, quiet }: OutputFlags, done: object, text: string): void {
  if (json) printJson({ ok: true, ...done });
  else if (!quiet) process.stdout.write(`${printable(text)}\n`);
}

/** `1 byte`, `2 bytes`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** On a terminal, escapes what could control it: JSON leaves U+0080 to U+009F as they are. */
export function printJson(value: unknown): void {
  const json = JSON.stringify(value);
  process.stdout.write(`${process.stdout.isTTY ? json.replace(controls, jsonEscapes) : json}\n`);
}

function jsonEscapes(character: string): string {
  const units = Array.from({ length: character.length }, (_, i) => character.charCodeAt(i));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}

/** Prints a line of a result: escaped on a terminal, as it is elsewhere. */
export function printLine(text: string): void {
  process.stdout.write(`${process.stdout.isTTY ? printable(text) : text}\n`);
}

/** Prints a value as it is; on a terminal, ends its line. */
export function printValue(value: Uint8Array): void {
  process.stdout.write(value);
  if (process.stdout.isTTY && value.at(-1) !== 0x0a) process.stdout.write("\n");
}

export type Colour = "red" | "green" | "yellow" | "dim";

/** Returns a function that colours text if the stream shows colours. */
export function painter(stream: NodeJS.WriteStream): (colour: Colour, text: string) => string {
  const { NO_COLOR, TERM } = process.env;
  const plain = stream.isTTY !== true || Boolean(NO_COLOR) || TERM === "dumb";
  return (colour, text) => (plain ? text : styleText(colour, text));
}

const controls = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Escapes a text so that it is one line and cannot control a terminal. */
export function printable(text: string): string {
  return text.replace(controls, (character) => {
    const digits = (character.codePointAt(0) ?? 0).toString(16);
    return `\\u{${digits}}`;
  });
}
