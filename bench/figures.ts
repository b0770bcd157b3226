/** Figures of a measurement: medians with their spread, ratios round by round, and the tables that show them. */
import { stripVTControlCharacters } from "node:util";

export type Spread = { readonly median: number; readonly min: number; readonly max: number };

export type Unit = "×" | "s" | "ms" | "µs" | "MiB" | "KiB" | "MB/s" | "/s" | "";

/** One line of a table. */
export type Finding = { readonly what: string; readonly value: Spread; readonly unit: Unit };

/** `table`: drawn by another tool, in place of findings. */
export type Outcome = { readonly title: string; readonly findings: readonly Finding[]; readonly table?: string };

export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError("there is no median of nothing");
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? Number.NaN;
  return (lower + upper) / 2;
}

export function spreadAcross(values: readonly number[]): Spread {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) };
}

/** Ratios of the figures of the same round. */
export function ratios(values: readonly number[], to: readonly number[]): number[] {
  if (values.length !== to.length) throw new RangeError("each round has both figures");
  return values.map((value, i) => value / (to[i] ?? Number.NaN));
}

export function found(what: string, values: readonly number[], unit: Unit): Finding {
  return { what, value: spreadAcross(values), unit };
}

/** The table for a terminal. */
export function plainTable({ title, findings, table }: Outcome): string {
  if (table !== undefined) return `\n${title}\n${table}\n`;
  const rows = findings.map(findingCells);
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join("  ");
  return `\n${title}\n${rows.map((row) => `  ${line(row).trimEnd()}\n`).join("")}`;
}

export function markdownTable({ title, findings, table }: Outcome): string {
  if (table !== undefined) return `\n#### ${title}\n\n\`\`\`text\n${stripVTControlCharacters(table).trim()}\n\`\`\`\n`;
  const rows = findings.map((finding) => `| ${findingCells(finding).join(" | ")} |\n`);
  return `\n#### ${title}\n\n| What | Median | Spread |\n| --- | ---: | ---: |\n${rows.join("")}`;
}

function findingCells({ what, value, unit }: Finding): string[] {
  const spread = value.min === value.max ? "" : `${shown(value.min)} to ${shown(value.max)}`;
  return [what, `${shown(value.median)} ${unit}`.trim(), spread];
}

/** Two or three significant digits. */
function shown(value: number): string {
  if (!Number.isFinite(value)) return "?";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toFixed(digits);
}
