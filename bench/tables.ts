/** Tables of outcomes for a terminal and in Markdown. */
import { styleText } from "node:util";
import type { Series } from "./measure.js";
import { type Finding, type Grid, isReached, type Outcome } from "./outcome.js";
import { median, type Spread } from "./statistics.js";

const seriesColumns = [
  "",
  "req/s",
  "p50 ms",
  "p99 ms",
  "p99.9 ms",
  "max ms",
  "CPU µs: main",
  "worker",
  "pool",
  "V8",
  "peak MiB",
  "load's CPU",
  "failed",
];
const findingColumns = ["", "median", "min … max", "target", ""];

/** For a terminal. */
export function showOutcome(outcome: Outcome): string {
  const title = styleText("bold", outcome.scenario);
  return `\n${title}\n${tables(outcome).map(plainTable).join("\n")}`;
}

export function markdownOutcome(outcome: Outcome): string {
  return `\n#### ${outcome.scenario}\n${tables(outcome)
    .map((cells) => `\n${markdownTable(cells)}`)
    .join("")}`;
}

/** All figures that have a target, in one table. */
export function showPromises(outcomes: readonly Outcome[], asMarkdown: boolean): string {
  const rows = outcomes.flatMap(({ scenario, findings }) =>
    findings
      .filter(({ target }) => target !== undefined)
      .map((finding) => findingRow({ ...finding, what: `${scenario}: ${finding.what}` })),
  );
  if (rows.length === 0) return "";
  const cells = [findingColumns, ...rows];
  return asMarkdown
    ? `\n#### Promises\n\n${markdownTable(cells)}`
    : `\n${styleText("bold", "promises")}\n${plainTable(cells)}`;
}

function tables({ series, findings, grid }: Outcome): Grid[] {
  const found: Grid[] = grid === undefined ? [] : [grid];
  if (series.length > 0) found.push([seriesColumns, ...series.map(seriesRow)]);
  if (findings.length > 0) found.push([findingColumns, ...findings.map(findingRow)]);
  return found;
}

function seriesRow({ subject, samples }: Series): string[] {
  const middle = (figure: (sample: (typeof samples)[number]) => number) => shown(median(samples.map(figure)));
  return [
    subject,
    middle((sample) => sample.perSecond),
    ...(["p50", "p99", "p999", "max"] as const).map((figure) =>
      middle(({ latency }) => latency?.[figure] ?? Number.NaN),
    ),
    middle((sample) => sample.cpu.main),
    middle((sample) => sample.cpu.worker),
    middle((sample) => sample.cpu.pool),
    middle((sample) => sample.cpu.engine),
    middle((sample) => sample.peak),
    `${shown(100 * median(samples.map(({ loadBusy }) => loadBusy)))} %`,
    String(samples.reduce((sum, sample) => sum + sample.failed, 0)),
  ];
}

function findingRow(finding: Finding): string[] {
  const { what, value, unit, target } = finding;
  const limit = target === undefined ? "" : "atLeast" in target ? `≥ ${target.atLeast}` : `≤ ${target.atMost}`;
  const reached = isReached(finding);
  const verdict = reached === null ? "" : reached ? "reached" : "MISSED";
  return [what, `${shown(value.median)} ${unit}`.trim(), spread(value), limit, verdict];
}

function spread({ min, max }: Spread): string {
  return min === max ? "" : `${shown(min)} … ${shown(max)}`;
}

/** Three significant digits. */
export function shown(value: number): string {
  if (!Number.isFinite(value)) return "?";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toFixed(digits);
}

export function plainTable(rows: Grid): string {
  const widths = widthsOf(rows);
  const line = (row: readonly string[]) => row.map((cell, i) => aligned(cell, widths[i] ?? 0, i)).join("  ");
  return rows.map((row) => `  ${line(row).trimEnd()}\n`).join("");
}

export function markdownTable([head = [], ...rows]: Grid): string {
  const widths = widthsOf([head, ...rows]).map((width) => Math.max(3, width));
  const line = (row: readonly string[]) =>
    `| ${row.map((cell, i) => aligned(cell, widths[i] ?? 0, i)).join(" | ")} |\n`;
  const rule = `| ${widths.map((width, i) => (i === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`)).join(" | ")} |\n`;
  return [line(head), rule, ...rows.map(line)].join("");
}

function widthsOf(rows: Grid): number[] {
  return (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => (row[i] ?? "").length)));
}

/** Aligns names left and figures right. */
function aligned(cell: string, width: number, column: number): string {
  return column === 0 ? cell.padEnd(width) : cell.padStart(width);
}
