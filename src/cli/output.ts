/** Owns how commands print: for people, for machines (`--json`), or not at all (`--quiet`); colour on terminals alone. */
import { styleText } from "node:util";
import type { Command } from "commander";

/** What the flags of `withOutput` become. */
export type OutputFlags = { readonly json?: true; readonly quiet?: true };

export function withOutput(command: Command): Command {
  return command.option("--json", "print one JSON object").option("-q, --quiet", "print nothing but errors");
}

export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
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
