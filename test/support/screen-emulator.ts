/** Content of a terminal after some output: its main and alternate screen, and the lines that scrolled away. */

export type Held = {
  readonly main: string;
  readonly alternate: string;
  readonly scrollback: string;
  readonly isAlternate: boolean;
};

type Grid = string[][];

const escapeKey = "\u001b";
const parts = new RegExp(`${escapeKey}\\[[0-?]*[ -/]*[@-~]|${escapeKey}[^[]|[^${escapeKey}]`, "gsu");

/** Understands what our programs and a shell write; other control sequences have no effect here. */
export function heldAfter(output: string, rows = 24, columns = 80): Held {
  const emulator = new Emulator(rows, columns);
  for (const [part] of output.matchAll(parts)) emulator.take(part);
  return emulator.held();
}

class Emulator {
  readonly #columns: number;
  readonly #grids: { readonly main: Grid; readonly alternate: Grid };
  readonly #scrollback: string[] = [];
  #name: "main" | "alternate" = "main";
  #row = 0;
  #column = 0;
  #wraps = true;

  constructor(rows: number, columns: number) {
    this.#columns = columns;
    const grid = () => Array.from({ length: rows }, (): string[] => []);
    this.#grids = { main: grid(), alternate: grid() };
  }

  held(): Held {
    const text = (grid: Grid) => grid.map((line) => Array.from(line, (cell) => cell ?? " ").join("")).join("\n");
    const { main, alternate } = this.#grids;
    const isAlternate = this.#name === "alternate";
    return { main: text(main), alternate: text(alternate), scrollback: this.#scrollback.join("\n"), isAlternate };
  }

  take(part: string): void {
    if (part.startsWith("\u001b")) this.#control(part.slice(2, -1), part.slice(-1));
    else if (part === "\r") this.#column = 0;
    else if (part === "\n") this.#feed();
    else if (part === "\b") this.#column = Math.max(0, this.#column - 1);
    else if (part >= " ") this.#write(part);
  }

  get #grid(): Grid {
    return this.#grids[this.#name];
  }

  #write(character: string): void {
    if (this.#column >= this.#columns) {
      if (this.#wraps) {
        this.#column = 0;
        this.#feed();
      } else this.#column = this.#columns - 1;
    }
    const line = this.#grid[this.#row] ?? [];
    line[this.#column++] = character;
  }

  #feed(): void {
    if (++this.#row < this.#grid.length) return;
    this.#row = this.#grid.length - 1;
    const line = this.#grid.shift() ?? [];
    if (this.#name === "main") this.#scrollback.push(line.join(""));
    this.#grid.push([]);
  }

  #control(parameters: string, final: string): void {
    const numbers = parameters.split(";").map(Number);
    const wanted = (at: number) => numbers[at] || 1;
    if (final === "H") this.#moveTo(wanted(0) - 1, wanted(1) - 1);
    else if (final === "K" || final === "J") this.#erase(final, numbers[0] === 2);
    else if (parameters === "?7") this.#wraps = final === "h";
    else if (parameters === "?1049") this.#name = final === "h" ? "alternate" : "main";
  }

  #moveTo(row: number, column: number): void {
    this.#row = Math.min(row, this.#grid.length - 1);
    this.#column = column;
  }

  /** To the end of the line or screen, or all of it. */
  #erase(what: "K" | "J", all: boolean): void {
    if (!all || what === "K") this.#grid[this.#row]?.splice(all ? 0 : this.#column);
    if (what === "J") for (const line of this.#grid.slice(all ? 0 : this.#row + 1)) line.splice(0);
  }
}
