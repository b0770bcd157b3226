/** Owns how commands print: for people, for machines (`--json`), or not at all (`--quiet`); colour on terminals alone. */
import { styleText } from "node:util";
import type { Command } from "commander";

/** What the flags of `withOutput` become. */
export type OutputFlags = { readonly json?: true; readonly quiet?: true };

export function withOutput(command: Command): Command {
  return command.option("--json", "print one JSON object").option("-q, --quiet", "print nothing but errors");
}

/** For a command whose result is what it is called for: that is printed with `--quiet`, too. */
export function withResult(command: Command): Command {
  return command.option("--json", "print one JSON object").option("-q, --quiet", "print nothing beside the result");
}

/** Gives a command that changes something the flag to try it first. */
export function withDryRun(command: Command): Command {
  return command.option("--dry-run", "say what would be done, and do nothing");
}

/** Says what a command has done: with an object to machines, with a line to people. */
export function report({ json, quiet }: OutputFlags, done: object, text: string): void {
  if (json) printJson({ ok: true, ...done });
  else if (!quiet) process.stdout.write(`${printable(text)}\n`);
}

export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/** A line of a result: as it is for programs, and such that it cannot steer a terminal. */
export function printLine(text: string): void {
  process.stdout.write(`${process.stdout.isTTY ? printable(text) : text}\n`);
}

/** A value as it is; on a terminal its line is ended. */
export function printValue(value: Uint8Array): void {
  process.stdout.write(value);
  if (process.stdout.isTTY && value.at(-1) !== 0x0a) process.stdout.write("\n");
}

export type Colour = "red" | "green" | "yellow" | "dim";

/** Colours text for a stream that shows colours, and leaves it alone for all others. */
export function painter(stream: NodeJS.WriteStream): (colour: Colour, text: string) => string {
  const { NO_COLOR, TERM } = process.env;
  const plain = stream.isTTY !== true || Boolean(NO_COLOR) || TERM === "dumb";
  return (colour, text) => (plain ? text : styleText(colour, text));
}

/** A name from the disk as one line that cannot steer a terminal. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    const digits = (character.codePointAt(0) ?? 0).toString(16);
    return `\\u{${digits}}`;
  });
}
