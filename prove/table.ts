/** Rows of findings on a terminal: side by side where there is room, below each other where there is not. */

export type Paint = (colour: "red" | "green" | "yellow" | "dim" | "bold", text: string) => string;

/** `holds`: null for what was not looked at. The first cell says what was looked at. */
export type TableRow = { readonly holds: boolean | null; readonly cells: readonly string[] };

/** Below this width in columns, the other cells stand under the first. */
export const fewestForTable = 64;
const gap = 2;
const indent = "  holds  ".length;

export function mark(holds: boolean | null): string {
  if (holds === null) return "  -  ";
  return holds ? "holds" : "FAILS";
}

export class Table {
  readonly #titles: readonly string[];
  readonly #paint: Paint;
  readonly #width: number;
  /** Columns of each cell: as many as its longest text needs, within a fifth of the line; the first gets the rest. */
  readonly #widths: readonly number[];

  /** @param titles of the cells after the first */
  constructor(titles: readonly string[], rows: readonly TableRow[], paint: Paint, width: number) {
    const needed = ["", ...titles].map((title, i) =>
      Math.max(title.length, ...rows.map(({ cells }) => cells[i]?.length ?? 0)),
    );
    const [first = 0, ...others] = needed;
    const most = Math.floor((width - indent) / (titles.length + 1.5));
    const kept = others.map((each) => Math.min(each, most));
    const left = kept.reduce((sum, each) => sum - each - gap, width - indent);
    this.#widths = [Math.min(first, left), ...kept];
    this.#titles = titles;
    this.#paint = paint;
    this.#width = width;
  }

  /** The titles; none where the cells stand below each other and have them. */
  head(): string[] {
    if (this.#width < fewestForTable) return [];
    return [this.#paint("dim", " ".repeat(indent) + this.#beside(["", ...this.#titles]))];
  }

  row({ holds, cells }: TableRow): string[] {
    const colour = holds === null ? "dim" : holds ? "green" : "red";
    const lines = this.#width < fewestForTable ? this.#below(cells) : this.#side(cells);
    return hanging(`  ${this.#paint(colour, mark(holds))}  `, lines, indent);
  }

  #below([what = "", ...others]: readonly string[]): string[] {
    const rest = others.map((text, i) => `${this.#titles[i]} ${text}`).join(", ");
    return [what, rest].flatMap((text) => folded(text, this.#width - indent));
  }

  #side(cells: readonly string[]): string[] {
    const parts = cells.map((text, i) => folded(text, this.#widths[i] ?? 1));
    const height = Math.max(...parts.map(({ length }) => length));
    return Array.from({ length: height }, (_, line) => this.#beside(parts.map((each) => each[line] ?? "")));
  }

  #beside(texts: readonly string[]): string {
    return texts
      .map((text, i) => text.padEnd((this.#widths[i] ?? 0) + gap))
      .join("")
      .trimEnd();
  }
}

/** Puts `first` before the first line, and as many spaces before the others. */
export function hanging(first: string, lines: readonly string[], columns = first.length): string[] {
  return lines.map((line, i) => `${i === 0 ? first : " ".repeat(columns)}${line}`);
}

/** Breaks a text at spaces into lines of at most `width` columns, and inside a word that is longer. */
export function folded(text: string, width: number): string[] {
  const words = text.split(" ").flatMap((word) => word.match(new RegExp(`.{1,${width}}`, "gsu")) ?? [""]);
  const lines: string[] = [];
  let line: string | null = null;
  for (const word of words) {
    if (line !== null && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === null ? word : `${line} ${word}`;
  }
  return [...lines, line ?? ""];
}
