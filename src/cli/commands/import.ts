/** `strongroom import`: secrets of another program's file, and the summary of what was stored. */
import { type Command, Option } from "commander";
import { type DuplicateAction, duplicateActions } from "../import/duplicates.js";
import type { ImportEntry } from "../import/entry.js";
import { type Format, folderOf, formats, planPaths, type ReadSource, readSource } from "../import/plan.js";
import { isReference, rewriteDotenv } from "../import/rewrite.js";
import { storeAll, type Tally } from "../import/store.js";
import { EarlierOption } from "../kit/args/args.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure, exitCodes } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { breakable, progressBar } from "../kit/output/progress.js";
import { counted, type OutputFlags, printable, printJson, say, withOutput } from "../kit/output.js";
import { steersPrograms } from "../run/steering.js";
import { problemOfName } from "../run/variables.js";

type Flags = ConnectionFlags &
  OutputFlags & {
    readonly format?: Format;
    readonly prefix?: string;
    readonly replace?: true;
    readonly dryRun?: true;
    readonly rewrite?: true;
    readonly drop?: readonly string[];
    readonly onDuplicate: DuplicateAction;
  };

type Summary = Tally & { readonly total: number; readonly leftOut: readonly string[] };

const details = `
formats:
  dotenv     NAME=value becomes the secret NAME
  json       the output of strongroom export --format json; or an object of
             strings, in which nested objects are folders
  pass       a password store, by default ~/.password-store or what
             PASSWORD_STORE_DIR says: gpg decrypts its .gpg files in memory,
             others are read as they are. The first line is the secret at the
             file's path, an otpauth:// line the secret totp under it, the rest
             the secret notes; a PEM file is one secret
  bitwarden  the unencrypted .json: folder/item/username, password, totp, url,
             notes, fields/…, a card's number, …
  1password  the .1pux: vault/title/username, password, totp, url, notes, and
             the fields of its sections; the vault only where there are several
  keepass    the .xml of KeePass or KeePassXC: group/title/username, password,
             url, notes, totp, fields/…; the root group is dropped, and the
             recycle bin is left out
  keepassxc  the .csv: group/title/username, password, url, notes, totp; the
             root group is dropped, and the recycle bin is left out
  lastpass   the .csv: group/name/username, password, url, notes, totp
  safari     the .csv: title or host, then /username, password, url, notes, totp
  1password-csv
             the .csv: title/username, password, url, notes, totp, tags,
             archived
  browser    the .csv of Chrome, Edge or Firefox: name or host, then /username,
             password, url, notes

A CSV file is recognized by its whole header, with commas, semicolons or tabs. A
column that no secret is made of is an error: --drop COLUMN leaves it out.

A / in a name makes folders. Entries that have no valid path or are too large
are listed, and the rest is imported (exit code 2; 12 if a stored secret is
damaged). Two entries with the same path are an error before anything is stored;
--on-duplicate suffix names the later ones item-2, item-3, by their creation
time, the same at every import, and skip leaves them out.
A secret that is already stored with the same value, type and description is
unchanged; one with another value is skipped (exit code 7), or replaced with
--replace.

--rewrite .env leaves NAME=strongroom://folder/NAME in the file for each value
that is now in the vault, so that  strongroom run -e .env -- command  runs with
them. The file is replaced at once, and keeps its mode, comments and order.
Lines that keep their value are named, and the exit code is then not 0.`;

export function define(command: Command, io: Io): void {
  const format = new Option(
    "--format <format>",
    "format of the source, see below; by default what the file looks like",
  );
  const onDuplicate = new Option("--on-duplicate <action>", "what to do with entries of the same path");
  command
    .description("Stores the secrets of a file or a directory.")
    .argument("[source]", "the file, or the directory of a pass store; - is standard input")
    .addOption(format.choices(formats))
    .addOption(onDuplicate.choices(duplicateActions).default("error"))
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
    .addHelpText("after", details);
  withConnection(withOutput(command)).action((file, flags) => importSecrets(io, file, flags));
}

async function importSecrets(io: Io, file: string | undefined, flags: Flags): Promise<void> {
  const folder = folderOf(flags.prefix);
  const source = withoutReferences(
    await readSource(io, file, flags.format, {
      nonInteractive: flags.nonInteractive === true,
      env: io.env,
      dropped: flags.drop ?? [],
    }),
    flags,
  );
  if (flags.rewrite && (file === undefined || file === "-" || source.format !== "dotenv"))
    throw new CommandFailure("usage", "--rewrite needs a dotenv file");
  if (flags.format === undefined && !flags.quiet && !flags.json) {
    say(io, `strongroom: the format is ${source.format}\n`);
  }
  const { entries, refused, leftOut } = planPaths(source.found, folder, flags.onDuplicate);
  const tally: Tally = {
    created: 0,
    replaced: 0,
    unchanged: 0,
    skipped: [],
    refused: [...source.refused, ...refused],
  };
  const total = entries.length + tally.refused.length;
  const failure = await untilFailure((signal) => {
    const bar = progressBar(io, "importing");
    const options = { folder, replace: flags.replace === true, dryRun: flags.dryRun === true, signal };
    const work = withClient(io, flags, (client) =>
      storeAll(client, entries, options, tally, (done) => bar.show(done, entries.length)),
    );
    return work.finally(() => bar.end());
  });
  const summary = { ...tally, total, leftOut: [...source.leftOut, ...leftOut] };
  report(io, summary, flags, failure);
  if (failure !== null) throw new CommandFailure(failure.exit, endedEarly(failure, summary));
  if (flags.rewrite && file !== undefined) await rewrite(io, file, entries, flags);
  if (tally.refused.some(({ damaged }) => damaged)) io.exitCode = exitCodes.findings;
  else if (tally.refused.length > 0) io.exitCode = exitCodes.usage;
  else if (tally.skipped.length > 0) io.exitCode = exitCodes.conflict; // `import … && rm file` must keep the file
}

/** A line of an env file that comes from the vault already is no value to store. */
function withoutReferences(source: ReadSource, { rewrite }: Flags): ReadSource {
  if (!rewrite) return source;
  return { ...source, found: source.found.filter(({ value }) => !isReference(value)) };
}

function problemOf(name: string): string | null {
  const steers = `${name} changes how programs run: use  run --set ${name}=path`;
  return problemOfName(name) ?? (steersPrograms(name) ? steers : null);
}

async function rewrite(io: Io, file: string, entries: readonly ImportEntry[], flags: Flags): Promise<void> {
  const paths = new Map(entries.map(({ origin, path }) => [origin, path]));
  const pathOf = (line: number) => paths.get(`line ${line}`) ?? null;
  const dryRun = flags.dryRun === true;
  const { rewritten, kept } = await withClient(io, flags, (client) =>
    rewriteDotenv(client, file, { pathOf, problemOf, dryRun }),
  );
  for (const { line, name, why } of kept)
    say(io, `strongroom: ${printable(file)}, line ${line}: ${printable(name)} keeps its value: ${why}\n`);
  if (kept.length > 0) io.exitCode = exitCodes.usage;
  if (flags.json || flags.quiet) return;
  const done = dryRun ? "would be replaced" : "replaced";
  io.stdout.write(`${printable(file)}: ${counted(rewritten, "value")} ${done} by references\n`);
  if (rewritten > 0 && !dryRun) io.stdout.write(`run with it: strongroom run -e ${printable(file)} -- command\n`);
}

/** Returns the failure that ended the work early, Ctrl-C included; null when it is complete. */
async function untilFailure(work: (signal: AbortSignal) => Promise<void>): Promise<CommandFailure | null> {
  try {
    await breakable(work);
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
  const { refused, leftOut, total, ...counts } = summary;
  for (const { origin, problem } of json ? [] : refused) {
    say(io, `strongroom: not imported: ${printable(origin)}: ${printable(problem)}\n`);
  }
  const ok = failure === null && refused.length === 0 && summary.skipped.length === 0;
  if (json) printJson(io, { ok, dryRun: dryRun === true, total, ...counts, refused, leftOut });
  else if (!quiet) io.stdout.write(asText(summary, dryRun === true));
}

const maxNamed = 20;

function asText({ created, replaced, unchanged, skipped, refused, leftOut }: Summary, dryRun: boolean): string {
  const counts = [
    `${created} created`,
    `${replaced} replaced`,
    `${unchanged} unchanged`,
    `${skipped.length} skipped`,
    ...(refused.length > 0 ? [`${refused.length} not imported`] : []),
  ];
  const lines = [
    ...firstOf(leftOut.map((what) => `left out: ${printable(what)}`)),
    ...firstOf(skipped.map((path) => `skipped, stored with another value: ${printable(path)}`)),
    ...(skipped.length > 0 ? ["--replace replaces the skipped secrets"] : []),
    `${counts.join(", ")}${dryRun ? " (a dry run: nothing was stored)" : ""}`,
  ];
  return `${lines.join("\n")}\n`;
}

function firstOf(rows: readonly string[]): string[] {
  const more = rows.length - maxNamed;
  return more > 0 ? [...rows.slice(0, maxNamed), `… and ${more} more; --json lists all`] : [...rows];
}
