/** `strongroom import`: secrets of another program's file, and the summary of what was stored. */
import { type Command, Option } from "commander";
import { type DuplicateAction, duplicateActions } from "../import/duplicates.js";
import type { ImportEntry } from "../import/entry.js";
import { formatNames, formats, readSource } from "../import/formats.js";
import { importFolder, planPaths } from "../import/plan.js";
import { rewriteDotenv } from "../import/rewrite.js";
import { storeAll, type Tally } from "../import/store.js";
import { EarlierOption } from "../kit/args/args.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure, exitCodes } from "../kit/errors.js";
import { shellWord } from "../kit/hints.js";
import type { Io } from "../kit/io.js";
import { breakable, progressBar } from "../kit/output/progress.js";
import { counted, type OutputFlags, printable, printJson, say, withHints, withOutput } from "../kit/output.js";
import { steersPrograms } from "../run/steering.js";
import { problemOfName } from "../run/variables.js";

type Flags = ConnectionFlags &
  OutputFlags & {
    readonly format?: string;
    readonly prefix?: string;
    readonly replace?: true;
    readonly dryRun?: true;
    readonly rewrite?: true;
    readonly drop?: readonly string[];
    readonly onDuplicate?: DuplicateAction;
  };

type Summary = Tally & {
  readonly total: number;
  readonly leftOut: readonly string[];
  readonly remarks: readonly string[];
};

const passHelp =
  "a password store, by default ~/.password-store or what PASSWORD_STORE_DIR says: gpg decrypts its .gpg files in memory, " +
  "others are read as they are. The first line is the secret at the file's path, an otpauth:// line the secret totp under it, " +
  "the rest the secret notes; a PEM file or a binary entry of gopass is one secret";

const details = () => `
formats:
${formatsHelp()}

A CSV file is recognized by its whole header, with commas, semicolons or tabs. A
column that no secret is made of is an error: --drop COLUMN leaves it out.

A / in a title makes folders. A title that is an address or has characters that
no path has is made a valid one; an item without a title is named by its host or
user. Of items with one title the later ones are item-2, item-3, by their
creation time, the same at every import; --on-duplicate skip leaves them out,
and error stops the import. Fields of one name keep their labels. Each such name
is listed. Seeds of one-time codes that cannot be computed, references that
cannot be resolved and entries that are too large are named, and the rest is
imported (exit code 2; 12 if a stored secret is damaged).
A secret that is already stored with the same value, type and description is
unchanged; one with another value is skipped (exit code 7), or replaced with
--replace.

--rewrite .env leaves NAME=strongroom://folder/NAME in the file for each value
that is now in the vault, so that  strongroom run -e .env -- command  runs with
them. The file is replaced at once, and keeps its mode, comments and order.
Lines that keep their value are named, and the exit code is then not 0.`;

/** Columns of a terminal that the help never exceeds. */
const helpWidth = 80;

function formatsHelp(): string {
  const rows = [{ name: "pass", help: passHelp }, ...formats];
  return rows.map(({ name, help }) => indented(name, help)).join("\n");
}

/** The name before the text, which is broken at spaces. */
function indented(name: string, help: string): string {
  const lines = [`  ${name.padEnd(10)}`];
  if (name.length > 9) lines.push(" ".repeat(12));
  for (const word of help.split(" ")) {
    const line = lines.at(-1) ?? "";
    if (line.length + word.length < helpWidth) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(`${" ".repeat(12)} ${word}`);
  }
  return lines.join("\n");
}

export function define(command: Command, io: Io): void {
  const format = new Option(
    "--format <format>",
    "format of the source, see below; by default what the file looks like",
  );
  const onDuplicate = new Option("--on-duplicate <action>", "what to do with entries of the same path");
  command
    .description("Stores the secrets of a file or a directory.")
    .argument("[source]", "the file, or the directory of a pass store; - is standard input")
    .addOption(format.choices(formatNames))
    .addOption(onDuplicate.choices(duplicateActions))
    .option("--prefix <folder>", "folder for the imported secrets")
    .option("--replace", "replace secrets that are stored with another value")
    .addOption(new EarlierOption("--force", "replace"))
    .option("--rewrite", "then replace the values in a dotenv file with references")
    .option(
      "--drop <column>",
      "leave out this column of a CSV file; repeatable",
      (name: string, all: string[] = []) => [...all, name],
    )
    .option("--dry-run", "store nothing, and print the same summary")
    .addHelpText("after", details());
  withConnection(withOutput(command)).action((file, flags) => importSecrets(io, file, flags));
}

async function importSecrets(io: Io, file: string | undefined, flags: Flags): Promise<void> {
  const folder = importFolder(flags.prefix);
  const source = await readSource(io, file, flags.format, {
    nonInteractive: flags.nonInteractive === true,
    env: io.env,
    dropped: flags.drop ?? [],
    isRewritten: flags.rewrite === true,
  });
  if (flags.rewrite && (file === undefined || file === "-" || source.format !== "dotenv"))
    throw new CommandFailure("usage", "--rewrite needs a dotenv file");
  if (flags.format === undefined && !flags.quiet && !flags.json) {
    say(io, `strongroom: the format is ${source.format}\n`);
  }
  const { entries, refused, leftOut, remarks } = planPaths(source.found, folder, flags.onDuplicate);
  const tally: Tally = { created: 0, replaced: 0, unchanged: 0, skipped: [], refused: [...source.refused, ...refused] };
  const total = entries.length + tally.refused.length;
  const failure = await untilFailure(io, (signal) => {
    const bar = progressBar(io, "importing");
    const options = { folder, replace: flags.replace === true, dryRun: flags.dryRun === true, signal };
    const work = withClient(io, flags, (client) =>
      storeAll(client, entries, options, tally, (done) => bar.show(done, entries.length)),
    );
    return work.finally(() => bar.end());
  });
  const said = { leftOut: [...source.leftOut, ...leftOut], remarks: [...source.remarks, ...remarks] };
  const summary = { ...tally, total, ...said };
  report(io, summary, flags, failure);
  if (failure !== null) throw new CommandFailure(failure.exit, endedEarly(failure, summary));
  if (flags.rewrite && file !== undefined) await rewrite(io, file, entries, flags);
  if (tally.refused.some(({ damaged }) => damaged)) io.exitCode = exitCodes.findings;
  else if (tally.refused.length > 0) io.exitCode = exitCodes.usage;
  else if (tally.skipped.length > 0) io.exitCode = exitCodes.conflict; // `import … && rm file` must keep the file
}

function variableProblem(name: string): string | null {
  const steers = `${name} changes how programs run: use  run --set ${name}=path`;
  return problemOfName(name) ?? (steersPrograms(name) ? steers : null);
}

async function rewrite(io: Io, file: string, entries: readonly ImportEntry[], flags: Flags): Promise<void> {
  const paths = new Map(entries.map(({ origin, path }) => [origin, path]));
  const importedPath = (line: number) => paths.get(`line ${line}`) ?? null;
  const dryRun = flags.dryRun === true;
  const { rewritten, kept } = await withClient(io, flags, (client) =>
    rewriteDotenv(client, file, { importedPath, variableProblem, dryRun }),
  );
  for (const { line, name, why } of kept)
    say(io, `strongroom: ${printable(file)}, line ${line}: ${printable(name)} keeps its value: ${why}\n`);
  if (kept.length > 0) io.exitCode = exitCodes.usage;
  if (flags.json || flags.quiet) return;
  const done = dryRun ? "would be replaced" : "replaced";
  io.stdout.write(`${printable(file)}: ${counted(rewritten, "value")} ${done} by references\n`);
  if (rewritten > 0 && !dryRun)
    io.stdout.write(withHints(io, `run with it: strongroom run -e ${shellWord(file)} -- command\n`));
}

/** Returns the failure that ended the work early, Ctrl-C included; null when it is complete. */
async function untilFailure(io: Io, work: (signal: AbortSignal) => Promise<void>): Promise<CommandFailure | null> {
  try {
    await breakable(io, work);
    return null;
  } catch (error) {
    if (error instanceof CommandFailure) return error;
    throw error;
  }
}

function endedEarly({ message }: CommandFailure, summary: Summary): string {
  const { created, replaced, unchanged, skipped, refused, total } = summary;
  const done = created + replaced + unchanged + skipped.length + refused.length;
  return `${message}\nstrongroom: stopped after ${done} of ${total} entries: run it again to continue, what is stored stays`;
}

function report(io: Io, summary: Summary, { json, quiet, dryRun }: Flags, failure: CommandFailure | null): void {
  const { refused, leftOut, remarks, total, ...counts } = summary;
  for (const { origin, problem } of json ? [] : refused) {
    say(io, `strongroom: not imported: ${printable(origin)}: ${printable(problem)}\n`);
  }
  const ok = failure === null && refused.length === 0 && summary.skipped.length === 0;
  if (json) printJson(io, { ok, dryRun: dryRun === true, total, ...counts, refused, leftOut, remarks });
  else if (!quiet) io.stdout.write(asText(summary, dryRun === true));
}

const maxNamed = 20;

function asText(
  { created, replaced, unchanged, skipped, refused, leftOut, remarks }: Summary,
  dryRun: boolean,
): string {
  const counts = [
    `${created} created`,
    `${replaced} replaced`,
    `${unchanged} unchanged`,
    `${skipped.length} skipped`,
    ...(refused.length > 0 ? [`${refused.length} not imported`] : []),
  ];
  const lines = [
    ...firstRows(remarks.map(printable)),
    ...firstRows(leftOut.map((what) => `left out: ${printable(what)}`)),
    ...firstRows(skipped.map((path) => `skipped, stored with another value: ${printable(path)}`)),
    ...(skipped.length > 0 ? ["--replace replaces the skipped secrets"] : []),
    `${counts.join(", ")}${dryRun ? " (a dry run: nothing was stored)" : ""}`,
  ];
  return `${lines.join("\n")}\n`;
}

function firstRows(rows: readonly string[]): string[] {
  const more = rows.length - maxNamed;
  return more > 0 ? [...rows.slice(0, maxNamed), `… and ${more} more; --json lists all`] : [...rows];
}
