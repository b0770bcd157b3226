/** Forms of the evidence for people: text for a terminal, Markdown, and one HTML file without scripts. */
import type { Evidence, Row, Section } from "./evidence.js";
import { fewestForTable, folded, hanging, mark, type Paint, Table, type TableRow } from "./table.js";

const heading = "Strongroom: evidence";
const verdictColours = { holds: "green", fails: "red", unknown: "yellow" } as const;
const columnTitles = ["expected", "found"];

/** @param width of the terminal, in columns */
export function asText({ verdict, conclusion, reason, sections }: Evidence, paint: Paint, width: number): string {
  const head = [...folded(conclusion, width), ...(reason === null ? [] : reasonLines(reason, width))];
  const rows = sections.flatMap((section) => (section.kind === "checks" ? section.rows.map(tableRow) : []));
  const table = new Table(columnTitles, rows, paint, width);
  const blocks = sections.map((section, i) => {
    const title = folded(section.title, width).map((line) => paint("bold", line));
    const content = section.kind === "checks" ? section.rows.flatMap((row) => table.row(tableRow(row))) : [];
    return ["", ...title, ...(i === 0 ? table.head() : []), ...content, ...textLines(section, width)];
  });
  return `${[...head.map((line) => paint(verdictColours[verdict], line)), ...blocks.flat()].join("\n")}\n`;
}

/** Commands, which stand between double spaces, are never broken: a shell would execute their first line alone. */
function reasonLines(reason: string, width: number): string[] {
  if (reason.length <= width) return [reason];
  return reason.split("  ").flatMap((part, i) => (i % 2 === 0 ? folded(part, width) : [`  ${part}`]));
}

function tableRow({ what, expected, found, holds }: Row): TableRow {
  return { holds, cells: [what, String(expected), String(found)] };
}

function textLines(section: Section, width: number): string[] {
  if (section.kind === "checks") return [];
  if (section.kind === "list") return section.texts.flatMap((text) => hanging("  - ", folded(text, width - 4)));
  const label = Math.max(...section.facts.map(([name]) => name.length)) + 4;
  if (width < fewestForTable)
    return section.facts.flatMap(([name, value]) => [`  ${name}`, ...hanging("    ", folded(value, width - 4))]);
  return section.facts.flatMap(([name, value]) => hanging(`  ${name}`.padEnd(label), folded(value, width - label)));
}

export function asMarkdown({ conclusion, reason, sections }: Evidence): string {
  const end = [conclusion, ...(reason === null ? [] : [reason])].map(escapeMarkdown).join(" ");
  const blocks = sections.map((section) => `## ${escapeMarkdown(section.title)}\n\n${markdownContent(section)}`);
  return `${[`# ${heading}`, `**${end}**`, ...blocks].join("\n\n")}\n`;
}

function markdownContent(section: Section): string {
  const row = (cells: readonly string[]) => `| ${cells.map(escapeMarkdown).join(" | ")} |`;
  if (section.kind === "list") return section.texts.map((text) => `- ${escapeMarkdown(text)}`).join("\n");
  if (section.kind === "facts") return ["| | |", "|---|---|", ...section.facts.map(row)].join("\n");
  return [row(["", "", ...columnTitles]), "|---|---|---|---|", ...section.rows.map((each) => row(rowCells(each)))].join(
    "\n",
  );
}

function rowCells(row: Row): string[] {
  return [mark(row.holds).trim(), row.what, String(row.expected), String(row.found)];
}

function escapeMarkdown(text: string): string {
  return text.replace(/[\\|<>`*_]/g, "\\$&");
}

const style = `
:root { color-scheme: light dark; --good: light-dark(#1a6b35, #6fd694); --bad: light-dark(#b3261e, #ff9a90); --line: light-dark(#d0d5db, #3b434c); }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; overflow-wrap: anywhere; }
.verdict { border-left: 0.4rem solid; font-size: 1.25rem; font-weight: 600; padding-left: 0.8rem; }
.holds { color: var(--good); } .fails { color: var(--bad); }
h2 { font-size: 1.05rem; margin: 2rem 0 0.4rem; }
table { border-collapse: collapse; table-layout: fixed; width: 100%; }
th:nth-child(1) { width: 10%; } th:nth-child(3), th:nth-child(4) { width: 19%; }
th, td { border-top: 1px solid var(--line); padding: 0.25rem 0.8rem 0.25rem 0; text-align: left; vertical-align: top; font-weight: normal; }
thead th { border: 0; font-size: 0.85rem; opacity: 0.8; }
td, dd { font-variant-numeric: tabular-nums; }
table.first td, table.first th { font-size: 1.15rem; }
dl { display: grid; gap: 0.1rem 1rem; grid-template-columns: minmax(7rem, auto) 1fr; } dd { margin: 0; }
`;

export function asHtml({ verdict, conclusion, reason, sections }: Evidence): string {
  const blocks = sections.map((section, i) => {
    return `<h2>${escapeHtml(section.title)}</h2>\n${htmlContent(section, i === 0)}`;
  });
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${heading}</title>
<style>${style}</style>
</head>
<body>
<h1>${heading}</h1>
<p class="verdict ${verdict}">${conclusion}</p>
${reason === null ? "" : `<p>${escapeHtml(reason)}</p>\n`}${blocks.join("\n")}
</body>
</html>
`;
}

function htmlContent(section: Section, isFirst: boolean): string {
  const all = (texts: readonly string[]) => texts.join("\n");
  if (section.kind === "list")
    return `<ul>\n${all(section.texts.map((text) => `<li>${escapeHtml(text)}</li>`))}\n</ul>`;
  if (section.kind === "facts") {
    const facts = section.facts.map(([name, value]) => `<dt>${escapeHtml(name)}</dt><dd>${escapeHtml(value)}</dd>`);
    return `<dl>\n${all(facts)}\n</dl>`;
  }
  const titles = ["result", "check", ...columnTitles].map((name) => `<th scope="col">${name}</th>`).join("");
  const rows = section.rows.map((row) => {
    const [marked = "", ...cells] = rowCells(row).map(escapeHtml);
    const colour = row.holds === null ? "" : ` class="${row.holds ? "holds" : "fails"}"`;
    return `<tr><td${colour}>${marked}</td>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`;
  });
  const kind = isFirst ? ' class="first"' : "";
  return `<table${kind}>\n<thead><tr>${titles}</tr></thead>\n<tbody>\n${all(rows)}\n</tbody>\n</table>`;
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
