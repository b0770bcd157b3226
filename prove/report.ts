/** Findings of a run of `prove`, and their forms: text, JSON, Markdown and one HTML file without scripts. */

export type Step = "surroundings" | "program" | "decoder" | "known-keys" | "attacker" | "canary" | "disk";
export type VaultState = "unlocked" | "locked" | null;

/** In `attacker`, `found` is the number of places that open the vault. */
export type Check = {
  readonly step: Step;
  readonly state: VaultState;
  readonly what: string;
  readonly expected: string | number;
  readonly found: string | number;
  readonly holds: boolean;
  /** The finding in words. */
  readonly detail?: string;
};

export type Verdict = "holds" | "fails" | "unknown";

/** `reason`: why the verdict is unknown, and the command that could look. */
export type Report = {
  readonly verdict: Verdict;
  readonly reason: string | null;
  readonly at: string;
  readonly checks: readonly Check[];
  readonly notShown: readonly string[];
  /** Weaknesses that no promise covers, but that decide what the promises are worth. */
  readonly weaknesses: readonly string[];
  readonly machine: Readonly<Record<string, string | number | null>>;
};

/** Why something cannot be looked at, and the command that could. The verdict is then unknown. */
export class CouldNotLook extends Error {}

export const exitOf: Readonly<Record<Verdict, number>> = { holds: 0, fails: 12, unknown: 13 };

const titles: Readonly<Record<Step, string>> = {
  surroundings: "Surroundings",
  program: "Program files",
  decoder: "Independent decoder",
  "known-keys": "Known keys in memory",
  attacker: "Attacker's scan of memory, without any secret",
  canary: "A value followed",
  disk: "Files on disk",
};

const conclusions: Readonly<Record<Verdict, string>> = {
  holds: "Every promise that was checked holds.",
  fails: "At least one promise does not hold.",
  unknown: "Not everything could be checked, so there is no verdict.",
};

type Paint = (colour: "red" | "green" | "yellow" | "dim", text: string) => string;

export function asText(report: Report, paint: Paint): string {
  const width = Math.max(...report.checks.map(({ what }) => what.length), 0);
  const lines = groups(report).flatMap(([title, checks]) => [
    `\n${title}`,
    ...checks.map((check) => {
      const mark = check.holds ? paint("green", "holds") : paint("red", "FAILS");
      const expected = check.holds ? "" : paint("dim", `  (expected ${check.expected})`);
      return `  ${mark}  ${(formatState(check) + check.what).padEnd(width + 10)}  ${formatFound(check)}${expected}`;
    }),
  ]);
  const notShown = report.notShown.map((text) => `  - ${text}`);
  const colour = { holds: "green", fails: "red", unknown: "yellow" } as const;
  const reason = report.reason === null ? [] : [report.reason];
  const machine = Object.entries(report.machine).map(([name, value]) => `${name} ${value ?? "unknown"}`);
  const end = [paint(colour[report.verdict], conclusions[report.verdict]), ...reason];
  return [
    ...lines,
    ...(report.weaknesses.length > 0 ? ["", paint("yellow", weakHeading)] : []),
    ...report.weaknesses.map((text) => `  - ${text}`),
    "",
    "Not shown by this run",
    ...notShown,
    "",
    paint("dim", machine.join(", ")),
    ...end,
    "",
  ]
    .join("\n")
    .replace(/^\n/, "");
}

const weakHeading = "Weaknesses of this machine, which no promise covers";

function formatFound({ found, detail }: Check): string {
  return detail === undefined ? String(found) : `${found}: ${detail}`;
}

function formatState({ state }: Check): string {
  return state === null ? "" : `${state}: `;
}

function groups({ checks }: Report): [string, Check[]][] {
  const steps = Object.keys(titles) as Step[];
  const filled = steps.filter((step) => checks.some((check) => check.step === step));
  return filled.map((step) => [titles[step], checks.filter((check) => check.step === step)]);
}

export function asMarkdown(report: Report): string {
  const row = (cells: readonly (string | number)[]) =>
    `| ${cells.map((cell) => escapeMarkdown(String(cell))).join(" | ")} |`;
  const tables = groups(report).map(([title, checks]) => {
    const rows = checks.map((check) => row(checkCells(check)));
    return [`## ${title}`, "", row(columns), "|---|---|---|---|---|", ...rows, ""].join("\n");
  });
  const list = (texts: readonly string[]) => texts.map((text) => `- ${escapeMarkdown(text)}`).join("\n");
  const end = [conclusions[report.verdict], ...(report.reason === null ? [] : [report.reason])].map(escapeMarkdown);
  return [
    "# Strongroom: evidence",
    `${end.join(" ")} Checked at ${report.at}.`,
    ...tables,
    ...(report.weaknesses.length > 0 ? [`## ${weakHeading}\n\n${list(report.weaknesses)}\n`] : []),
    `## Not shown by this run\n\n${list(report.notShown)}\n`,
    `## Machine\n\n${list(machineLines(report))}\n`,
  ].join("\n\n");
}

const columns = ["State", "Check", "Expected", "Found", "Result"];

function checkCells(check: Check): (string | number)[] {
  const { state, what, expected, holds } = check;
  return [state ?? "", what, expected, formatFound(check), holds ? "holds" : "FAILS"];
}

function machineLines({ machine }: Report): string[] {
  return Object.entries(machine).map(([name, value]) => `${name}: ${value ?? "unknown"}`);
}

function escapeMarkdown(text: string): string {
  return text.replace(/[\\|<>`*_]/g, "\\$&");
}

export function asHtml(report: Report): string {
  const row = (check: Check) =>
    `<tr class="${check.holds ? "holds" : "fails"}">${checkCells(check)
      .map((cell) => `<td>${escapeHtml(String(cell))}</td>`)
      .join("")}</tr>`;
  const tables = groups(report).map(
    ([title, checks]) =>
      `<h2>${escapeHtml(title)}</h2>\n<table>\n<thead><tr>${columns.map((name) => `<th scope="col">${name}</th>`).join("")}</tr></thead>\n` +
      `<tbody>\n${checks.map(row).join("\n")}\n</tbody>\n</table>`,
  );
  const list = (texts: readonly string[]) =>
    `<ul>\n${texts.map((text) => `<li>${escapeHtml(text)}</li>`).join("\n")}\n</ul>`;
  const weak = report.weaknesses.length > 0 ? `<h2>${weakHeading}</h2>\n${list(report.weaknesses)}\n` : "";
  const reason = report.reason === null ? "" : `<p>${escapeHtml(report.reason)}</p>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Strongroom: evidence</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color-scheme: light dark; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border: 1px solid #888; padding: 0.3rem 0.6rem; text-align: left; vertical-align: top; }
.fails td:last-child { font-weight: bold; }
</style>
</head>
<body>
<h1>Strongroom: evidence</h1>
<p><strong>${conclusions[report.verdict]}</strong> Checked at ${escapeHtml(report.at)}.</p>
${reason}
${tables.join("\n")}
${weak}<h2>Not shown by this run</h2>
${list(report.notShown)}
<h2>Machine</h2>
${list(machineLines(report))}
</body>
</html>
`;
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
