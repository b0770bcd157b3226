/** A report in the order in which a reviewer reads it: the one structure of which text, Markdown and HTML are made. */
import type { Check, Report, Step, Verdict } from "./report.js";

/** `holds`: null for what was not looked at. */
export type Row = {
  readonly what: string;
  readonly expected: string | number;
  readonly found: string | number;
  readonly holds: boolean | null;
};

export type Section = { readonly title: string } & (
  | { readonly kind: "checks"; readonly rows: readonly Row[] }
  | { readonly kind: "list"; readonly texts: readonly string[] }
  | { readonly kind: "facts"; readonly facts: readonly (readonly [name: string, value: string])[] }
);

export type Evidence = {
  readonly verdict: Verdict;
  /** The verdict as a sentence, and why it is unknown. */
  readonly conclusion: string;
  readonly reason: string | null;
  readonly sections: readonly Section[];
};

const conclusions: Readonly<Record<Verdict, string>> = {
  holds: "Every promise that was checked holds.",
  fails: "At least one promise does not hold.",
  unknown: "Not everything could be checked, so there is no verdict.",
};

const titles: Readonly<Record<Step, string>> = {
  surroundings: "Surroundings",
  program: "Program files",
  decoder: "Independent decoder",
  "known-keys": "Known keys in memory, in any form and in pieces of 8 bytes",
  attacker: "Attacker's scan of memory, without any secret",
  canary: "A value followed through put, get, batch, undo and delete",
  disk: "Files on disk",
};

/** Returns the report's sections, from the verdict's three numbers to what goes with a ticket. */
export function evidence(report: Report): Evidence {
  const { verdict, reason, checks, weaknesses, notShown } = report;
  const all = checks.map((check, i) => ({ ...checkRow(check, checks.slice(0, i)), step: check.step }));
  const failed = all.filter(({ holds }) => !holds);
  const looked = (Object.keys(titles) as Step[]).map((step) => {
    const rows = all.filter((row) => row.step === step);
    return { kind: "checks", title: titles[step], rows } as const;
  });
  const sections: readonly Section[] = [
    { kind: "checks", title: "In memory", rows: numbers(checks) },
    { kind: "checks", title: "What failed", rows: failed },
    ...looked,
    { kind: "list", title: "Weaknesses of this machine, which no promise covers", texts: weaknesses },
    { kind: "list", title: "Not shown by this run", texts: notShown },
    { kind: "facts", title: "For the ticket (hashes are SHA-256)", facts: ticket(report) },
  ];
  return { verdict, conclusion: conclusions[verdict], reason, sections: sections.filter(hasContent) };
}

function hasContent(section: Section): boolean {
  if (section.kind === "facts") return true;
  return section.kind === "checks" ? section.rows.length > 0 : section.texts.length > 0;
}

/** @param earlier checks, of which one may be the same, made before the vault was locked and unlocked */
function checkRow({ step, state, what, expected, found, holds, detail }: Check, earlier: readonly Check[]): Row {
  const isAgain = earlier.some((each) => each.step === step && each.state === state && each.what === what);
  const named = state === null ? what : `${state}${isAgain ? " again" : ""}: ${what}`;
  return { what: named, expected, found: detail === undefined ? found : `${found}: ${detail}`, holds };
}

/**
 * A scan from outside sees one process, so that "front end" is all of its memory but the one place of the key worker. None
 * for a run that looked at no memory in a known state.
 */
function numbers(checks: readonly Check[]): Row[] {
  const scans = (state: Check["state"]) => checks.filter((each) => each.step === "attacker" && each.state === state);
  const most = (state: Check["state"]) => Math.max(...scans(state).map(({ found }) => Number(found)));
  const number = (state: Check["state"], what: string, expected: number, count: () => number): Row => {
    if (scans(state).length === 0) return { what, expected, found: "not looked at", holds: null };
    const found = count();
    return { what, expected, found, holds: found === expected };
  };
  if (scans("unlocked").length + scans("locked").length === 0) return [];
  return [
    number("unlocked", "front end: copies of any secret", 0, () => strayCopies(checks)),
    number("unlocked", "key worker: places with the key", 1, () => Math.min(1, most("unlocked"))),
    number("locked", "after lock: places with the key", 0, () => most("locked")),
  ];
}

/** Counts copies that the unlocked server should not have; without the passphrase, the attacker's scan alone counts them. */
function strayCopies(checks: readonly Check[]): number {
  const unlocked = checks.filter(({ state }) => state === "unlocked");
  const known = unlocked.filter(({ step }) => step === "known-keys" || step === "canary");
  const most = new Map<string, number>();
  for (const { what, expected, found, holds } of known.length > 0 ? known : unlocked) {
    const excess = holds ? 0 : Math.max(0, Number(found) - (Number(expected) || 0));
    most.set(what, Math.max(excess, most.get(what) ?? 0));
  }
  return [...most.values()].reduce((sum, count) => sum + count, 0);
}

/** Short enough for a hash beside them on 80 columns. */
const factNames: Readonly<Record<string, string>> = {
  programListSha256: "program hash",
  nodeSha256: "Node hash",
  dumpSha256: "dump hash",
  system: "system",
  host: "host",
  kernel: "kernel",
  node: "prove's Node",
  ptraceScope: "ptrace scope",
  swapDevices: "swap devices",
  pid: "server pid",
  memoryMiB: "memory, MiB",
  keysTried: "keys tried",
  keySchedules: "schedules",
  stoodStillMs: "paused, ms",
  seconds: "seconds",
};

function ticket({ at, verdict, checks, machine }: Report): [name: string, value: string][] {
  const failed = checks.filter(({ holds }) => !holds).length;
  return [
    ["verdict", `${verdict}: ${checks.length} checks, ${failed} failed`],
    ["time", at],
    ...Object.keys(factNames)
      .filter((name) => name in machine)
      .map((name): [string, string] => [factNames[name] ?? name, String(machine[name] ?? "unknown")]),
  ];
}
