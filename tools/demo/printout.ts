/** Output of the demonstration as a table. */
import { styleText } from "node:util";

/** Copies of each secret found at each place; null where it was not searched for. */
export type Row = {
  readonly secret: string;
  readonly frontEnd: number | null;
  readonly keyWorker: number | null;
  readonly process: number;
  readonly halves: number;
  readonly expected: string;
  readonly holds: boolean;
};

export type Step = { readonly step: string; readonly rows: readonly Row[] };
export type Attack = { readonly attack: string; readonly outcome: string; readonly holds: boolean };

const columns = ["", "front end's heap", "key worker's heap", "whole process", "halves", "expected", ""];

export function showStep({ step, rows }: Step): string {
  const cells = rows.map(({ secret, frontEnd, keyWorker, process, halves, expected, holds }) => [
    secret,
    shown(frontEnd),
    shown(keyWorker),
    shown(process),
    shown(halves),
    expected,
    mark(holds),
  ]);
  return `\n${styleText("bold", step)}\n${table([columns, ...cells])}`;
}

export function showAttacks(attacks: readonly Attack[]): string {
  const cells = attacks.map(({ attack, outcome, holds }) => [attack, outcome, mark(holds)]);
  return `\n${styleText("bold", "attacks")}\n${table(cells)}`;
}

export function showVerdict(holds: boolean): string {
  return holds
    ? styleText("green", "\nverdict: every promise holds\n")
    : styleText("red", "\nverdict: A PROMISE IS BROKEN\n");
}

function shown(count: number | null): string {
  return count === null ? "" : String(count);
}

function mark(holds: boolean): string {
  return holds ? styleText("green", "holds") : styleText("red", "BROKEN");
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => (row[i] ?? "").length)));
  return rows
    .map(
      (row) =>
        `  ${row
          .map((cell, i) => cell.padEnd(widths[i] ?? 0))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
}
