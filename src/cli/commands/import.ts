/** Owns `strongroom import`: its flags, its summary, and what is said when it ends too early. */
import { type Command, Option } from "commander";
import { type Format, folderOf, formats, planPaths, readSource } from "../import/import-plan.js";
import { storeAll, type Tally } from "../import/store-entries.js";
import { type ConnectionFlags, withClient, withConnection } from "../session/connection.js";
import { CommandFailure, exitCodes } from "../session/exit-codes.js";
import { breakable } from "../session/interrupt.js";
import { type OutputFlags, printable, printJson, withOutput } from "../session/output.js";
import { progressBar } from "../session/progress.js";

type Flags = ConnectionFlags &
  OutputFlags & {
    readonly format: Format;
    readonly prefix?: string;
    readonly force?: true;
    readonly replace?: true;
    readonly dryRun?: true;
  };

type Summary = Tally & { readonly total: number; readonly leftOut: readonly string[] };

const details = `
formats:
  dotenv     NAME=value becomes the secret NAME
  json       what strongroom export --format json writes; or an object of
             strings, in which nested objects are folders
  pass       a directory with the decrypted files of a password store: the first
             line is the secret at the file's path, further lines are the secret
             notes under it; a PEM file is one secret
  bitwarden  the unencrypted .json: folder/item/username, password, totp, url,
             notes, fields/…, a card's number, …
  keepassxc  the .csv: group/title/username, password, url, notes, totp; the
             root group is left away

A / in a name makes folders. What cannot be a path, or is larger than the server
takes, is named, and the rest is imported (exit code 2; 12 when what is there is
damaged). Entries that would have the same path are an error before anything is
written. What is there with the same value, type and description is unchanged;
with others it is skipped (exit code 7), or replaced with --force.
`;

export function define(command: Command): void {
  const format = new Option("--format <format>", "what the file is, see below");
  command
    .description("Stores the secrets of a file, or of a directory.")
    .argument("<source>", "the file, or the directory of a pass store; - is standard input")
    .addOption(format.choices(formats).makeOptionMandatory())
    .option("--prefix <folder>", "the folder to put them into")
    .option("--force", "replace what is there with another value")
    .option("--replace", "the same as --force")
    .option("--dry-run", "write nothing, and print the same summary")
    .addHelpText("after", details);
  withConnection(withOutput(command)).action(importSecrets);
}

async function importSecrets(source: string, flags: Flags): Promise<void> {
  const folder = folderOf(flags.prefix);
  const reading = await readSource(source, flags.format);
  const { entries, refused } = planPaths(reading.found, folder);
  const tally: Tally = {
    created: 0,
    replaced: 0,
    unchanged: 0,
    skipped: [],
    refused: [...reading.refused, ...refused],
  };
  const total = entries.length + tally.refused.length;
  const failure = await untilFailure((signal) => {
    const bar = progressBar("importing");
    const manner = { folder, force: Boolean(flags.force ?? flags.replace), dryRun: flags.dryRun === true, signal };
    const work = withClient(flags, (client) =>
      storeAll(client, entries, manner, tally, (done) => bar.show(done, entries.length)),
    );
    return work.finally(() => bar.end());
  });
  const summary = { ...tally, total, leftOut: reading.leftOut };
  report(summary, flags, failure);
  if (failure !== null) throw new CommandFailure(failure.exit, endedEarly(failure, summary));
  if (tally.refused.some(({ damaged }) => damaged)) process.exitCode = exitCodes.findings;
  else if (tally.refused.length > 0) process.exitCode = exitCodes.usage;
  else if (tally.skipped.length > 0) process.exitCode = exitCodes.conflict; // its file is not to be thrown away
}

/** What made the work end too early, Ctrl-C among it; null when it was done. */
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
  return `${message}\nstrongroom: ended after ${done} of ${total} entries: run it again to go on, what is stored stays`;
}

function report(summary: Summary, { json, quiet, dryRun }: Flags, failure: CommandFailure | null): void {
  const { refused, leftOut, total, ...counts } = summary;
  for (const { origin, problem } of json ? [] : refused) {
    process.stderr.write(`strongroom: not imported: ${printable(origin)}: ${printable(problem)}\n`);
  }
  const ok = failure === null && refused.length === 0 && summary.skipped.length === 0;
  if (json) printJson({ ok, dryRun: dryRun === true, total, ...counts, refused, leftOut });
  else if (!quiet) process.stdout.write(asText(summary, dryRun === true));
}

const mostNamed = 20;

function asText({ created, replaced, unchanged, skipped, refused, leftOut }: Summary, dryRun: boolean): string {
  const counts = [
    `${created} created`,
    `${replaced} replaced`,
    `${unchanged} unchanged`,
    `${skipped.length} skipped`,
    ...(refused.length > 0 ? [`${refused.length} not imported`] : []),
  ];
  const lines = [
    ...some(leftOut.map((what) => `left out: ${printable(what)}`)),
    ...some(skipped.map((path) => `skipped, as it is there with another value: ${printable(path)}`)),
    ...(skipped.length > 0 ? ["--force replaces what was skipped"] : []),
    `${counts.join(", ")}${dryRun ? " (a dry run: nothing was written)" : ""}`,
  ];
  return `${lines.join("\n")}\n`;
}

function some(rows: readonly string[]): string[] {
  const more = rows.length - mostNamed;
  return more > 0 ? [...rows.slice(0, mostNamed), `… and ${more} more; --json names all`] : [...rows];
}
