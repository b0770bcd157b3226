/**
 * `strongroom check`: finds weak, reused, breached, old, expiring and unused secrets.
 * The server judges the values, so that none leaves it; a list of breached passwords is compared by hashes of one call.
 * `scan` is its other half: values where they should not be.
 */
import { type Command, Option } from "commander";
import { duration, nonEmpty } from "../../cli/kit/args/args.js";
import { folderPrefix } from "../../cli/kit/args/paths.js";
import { explainEmptyFolder, listSecrets } from "../../cli/kit/connection/secrets.js";
import { type ConnectionFlags, withClient, withConnection } from "../../cli/kit/connection/server.js";
import { CommandFailure, exitCodes } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { progressBar } from "../../cli/kit/output/progress.js";
import {
  counted,
  displayWidth,
  localDate,
  type OutputFlags,
  padded,
  painter,
  printable,
  printJson,
  printRows,
  withHints,
  withOutput,
} from "../../cli/kit/output.js";
import { breachedIn } from "./breaches.js";
import { judgeFolder, type Limits, type Problem, problems, type Verdict, verdictsOn } from "./judge.js";
import { usesSince } from "./uses.js";

type Flags = ConnectionFlags &
  OutputFlags & {
    readonly old: number;
    readonly expiring: number;
    readonly unused?: number;
    readonly breached?: string;
  };

const dayMs = 86_400_000;
const longestMs = 36_500 * dayMs;

const details = `
weak       fewer than 10^8 guesses, by an estimate like zxcvbn's
reused     the same value at another path
breached   in the list of --breached
expired, expiring, old, unused   by the times that the flags give

The values stay in the server's key worker, which checks them. A secret that is
not a password by its type, or by the end of its path and its form, such as a
user name or a host, is never reported as weak, reused or old, and is counted. A
URL with a password is as weak as the password. --breached compares SHA-1 hashes
with a local list, such as Have I Been Pwned offers for download; nothing is
sent anywhere. A list above 64 MiB must be sorted by hash. --unused needs an
audit log of reads (serve --audit all) and the right to read it.
The exit code is ${exitCodes.findings} when something is found.`;

export function define(command: Command, io: Io): void {
  const time = (flags: string, meaning: string) => new Option(flags, meaning).argParser(duration(longestMs));
  command
    .description("Finds secrets that are weak, reused, breached, old, expiring or unused. Prints no values.")
    .argument("[folder]", "only what is in this folder")
    .addOption(time("--old <duration>", "passwords that have not changed for this long").default(365 * dayMs, "365d"))
    .addOption(time("--expiring <duration>", "what expires within this time").default(30 * dayMs, "30d"))
    .addOption(time("--unused <duration>", "what was not read for this long, according to the audit log"))
    .option("--breached <file>", "compare with this list of SHA-1 hashes of breached passwords", nonEmpty)
    .addHelpText("after", details);
  withConnection(withOutput(command)).action((folder, flags) => check(io, folder, flags));
}

async function check(io: Io, folder = "", flags: Flags): Promise<void> {
  const { old: oldMs, expiring: expiringMs, unused: unusedMs = null, breached: file } = flags;
  const limits: Limits = { now: io.clock.now(), oldMs, expiringMs, unusedMs };
  const bar = progressBar(io, "checking");
  const { verdicts, damaged } = await withClient(io, flags, async (client) => {
    const listed = await listSecrets(client, folder);
    if (listed.length === 0 && folderPrefix(folder) !== "")
      throw new CommandFailure("notFound", await explainEmptyFolder(client, folder));
    const uses = unusedMs === null ? new Map<string, string>() : await usesSince(client, limits.now - unusedMs);
    const parts = ["strength", "reuse", ...(file === undefined ? [] : ["breach" as const])] as const;
    const judged = await judgeFolder(client, folder, parts, (done) => bar.show(done, listed.length));
    const breached = file === undefined ? new Set<string>() : await breachedIn(file, judged.key, judged.entries);
    return { verdicts: verdictsOn({ listed, judged, breached, uses }, limits), damaged: judged.damaged };
  }).finally(() => bar.end());
  const found = verdicts.filter(({ problems }) => problems.length > 0);
  if (flags.json) printJson(io, asJson(verdicts, found, damaged));
  else if (!flags.quiet) printRows(io, formatReport(io, verdicts, found, damaged));
  if (found.length + damaged.length > 0) io.exitCode = exitCodes.findings;
}

function asJson(verdicts: readonly Verdict[], found: readonly Verdict[], damaged: readonly string[]): object {
  const shown = found.map(({ isCredential: _, ...verdict }) => verdict);
  const ok = found.length + damaged.length === 0;
  return { ok, checked: verdicts.length, ordinary: ordinaryAmong(verdicts), found: shown, damaged };
}

/** Returns how many are not judged as passwords. */
function ordinaryAmong(verdicts: readonly Verdict[]): number {
  return verdicts.filter(({ isCredential }) => !isCredential).length;
}

function formatReport(
  io: Io,
  verdicts: readonly Verdict[],
  found: readonly Verdict[],
  damaged: readonly string[],
): string {
  const paint = painter(io);
  const columns = io.stdout.columns || 80;
  const width = Math.min(
    Math.floor(columns / 2),
    Math.max(0, ...found.map(({ path }) => displayWidth(printable(path)))),
  );
  const rows = found.flatMap((verdict) => {
    const path = printable(verdict.path);
    const what = verdict.problems.map((problem) => wordsFor(problem, verdict)).join("; ");
    const isLong = displayWidth(path) > width;
    return isLong ? [path, `    ${what}`] : [`${padded(path, width)}  ${what}`];
  });
  const unread = damaged.map((path) => `${printable(path)}  damaged: ${withHints(io, "see  strongroom doctor")}`);
  const counts = problems
    .map((problem) => [problem, found.filter((one) => one.problems.includes(problem)).length] as const)
    .filter(([, count]) => count > 0)
    .map(([problem, count]) => `${count} ${problem}`);
  const end = counts.length === 0 ? paint("green", "no problems found") : counts.join(", ");
  const ordinary = ordinaryAmong(verdicts);
  const left = ordinary === 0 ? "" : `; ${ordinary} not judged`;
  return [...rows, ...unread, `${counted(verdicts.length, "secret")} checked: ${end}${left}`]
    .map((line) => `${line}\n`)
    .join("");
}

const weakness = ["very weak", "very weak", "weak"];

function wordsFor(problem: Problem, { score, sameAs, updatedAt, expiresAt }: Verdict): string {
  const [first = "", ...others] = sameAs;
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  const words: { readonly [P in Problem]: string } = {
    weak: weakness[score ?? 0] ?? "weak",
    reused: `same value as ${printable(first)}${more}`,
    breached: "breached",
    expired: `expired ${expiresAt === null ? "" : localDate(new Date(expiresAt))}`,
    expiring: `expires ${expiresAt === null ? "" : localDate(new Date(expiresAt))}`,
    old: `unchanged since ${localDate(new Date(updatedAt))}`,
    unused: "unused",
  };
  return words[problem];
}
