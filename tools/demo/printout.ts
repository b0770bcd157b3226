/** Printout of the demonstration, in the layout of prove's report. */
import { styleText } from "node:util";
import { folded, type Paint, Table } from "../../prove/table.js";
import type { Comparison } from "./control.js";

/** An attack, and its result. */
export type Attack = { readonly attack: string; readonly outcome: string; readonly holds: boolean };

const usualColumns = 80;

export class Printout {
  readonly #width: number;
  readonly #paint: Paint;

  constructor({ isTTY, columns }: { readonly isTTY?: boolean; readonly columns?: number }) {
    this.#width = columns ?? usualColumns;
    this.#paint = isTTY === true && !process.env["NO_COLOR"] ? styleText : (_, text) => text;
  }

  comparison(rows: readonly Comparison[]): string {
    const cells = rows.map(({ what, naive, expected, ours, holds }) => {
      return { holds, cells: [what, ...[naive, ours, expected].map(String)] };
    });
    const table = new Table(["naive server", "Strongroom", "expected"], cells, this.#paint, this.#width);
    const [naive, ours] = [rows.map((row) => row.naive), rows.map((row) => row.ours)];
    const text =
      "The control is a naive server of about 40 lines: what the same search finds there shows that it works. " +
      "Both did the same: unlock, 20 puts, 20 gets, lock.";
    const [passphrase, key, afterLock] = naive;
    const end = `naive: passphrase ${passphrase} times, key ${key}, after lock still ${afterLock}; ours ${ours.join(", ")}`;
    return [
      ...folded("Copies in memory, found by prove's scanner", this.#width).map((line) => this.#paint("bold", line)),
      ...folded(text, this.#width),
      ...table.head(),
      ...cells.flatMap((row) => table.row(row)),
      ...folded(end, this.#width),
      "",
      ...folded("Attacks: what each tried, and what it got", this.#width).map((line) => this.#paint("bold", line)),
      "",
    ].join("\n");
  }

  attack({ attack, outcome, holds }: Attack): string {
    const row = { holds, cells: [attack, outcome] };
    const widest = { holds, cells: ["x".repeat(41), "x".repeat(28)] };
    return `${new Table(["got"], [widest], this.#paint, this.#width).row(row).join("\n")}\n`;
  }

  verdict(holds: boolean): string {
    const [colour, text] = holds
      ? (["green", "Every promise holds."] as const)
      : (["red", "A PROMISE IS BROKEN."] as const);
    return `\n${this.#paint(colour, text)}\n`;
  }
}
