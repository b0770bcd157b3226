/** `strongroom export`: secrets as plaintext, only with --plaintext. */
import { type Command, Option } from "commander";
import type { SecretEntry, StrongroomClient } from "../../client/client.js";
import { dotenvLine } from "../import/dotenv.js";
import { exportEnd, exportRow, exportStart } from "../import/json.js";
import { secretText } from "../kit/args/fields.js";
import { folderPrefix } from "../kit/args/paths.js";
import { explainEmptyFolder, listSecrets, noSecretsAt, secretsAt } from "../kit/connection/secrets.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { checkOutput, type OutputFileFlags, withOutputFile, writeOut } from "../kit/output/output-file.js";
import { noBar, type Progress, progressBar } from "../kit/output/progress.js";
import { counted, printable, printJson, say, shownJson } from "../kit/output.js";
import { buildEnvironment } from "../run/environment.js";
import { findProject, type Project } from "../run/project.js";
import { exportLines, type Naming, namesFor, namings } from "../run/variables.js";

const formats = ["dotenv", "shell", "json"] as const;
type Format = (typeof formats)[number];

type Flags = ConnectionFlags &
  OutputFileFlags & {
    readonly prefix?: string;
    readonly name: Naming;
    readonly format: Format;
    readonly plaintext?: true;
  };

const details = `
Without --prefix, dotenv and shell use the project file .strongroom.toml of this
directory or one above, if there is one: the variables are then those of run.
See strongroom help allow.`;

export function define(command: Command, io: Io): void {
  const format = new Option("--format <format>", "dotenv or shell: variables, named as by run; json: for import");
  const naming = new Option("--name <how>", "name variables by the path's last segment, or by the path in the folder");
  command
    .description("Writes secrets as unencrypted plaintext.")
    .option("--prefix <folder>", "only the secrets in this folder")
    .addOption(naming.choices(namings).default("last"))
    .addOption(format.choices(formats).makeOptionMandatory())
    .option("--plaintext", "confirm that the values are written unencrypted")
    .addHelpText("after", details);
  withConnection(withOutputFile(command)).action((flags) => exportSecrets(io, flags));
}

async function exportSecrets(io: Io, flags: Flags): Promise<void> {
  if (!flags.plaintext) throw new CommandFailure("usage", refusal);
  await checkOutput(flags);
  const project = flags.prefix === undefined && flags.format !== "json" ? await findProject(io) : null;
  if (project !== null) return exportProject(io, project, flags, flags.format);
  const showsValues = flags.output === undefined && io.stdout.isTTY; // a bar would stand among them
  const bar = showsValues ? noBar : progressBar(io, "exporting");
  try {
    const count = await withClient(io, flags, (client) => writeAll(io, client, flags, bar));
    if (flags.output !== undefined) report(io, count, flags.output, flags);
  } finally {
    bar.end();
  }
}

/** The same variables as `run` would set; JSON is for import, and holds the whole vault. */
async function exportProject(io: Io, { file, sources }: Project, flags: Flags, format: Format): Promise<void> {
  const { variables } = await buildEnvironment(sources, (work) => withClient(io, flags, work));
  const lines: string[] = [];
  const refused: string[] = [];
  for (const [name, value] of variables) {
    const line = format === "json" ? null : writers[format](name, value);
    if (line === null) refused.push(name);
    else lines.push(line);
  }
  if (refused.length > 0) throw new CommandFailure("usage", unwritable(refused, format));
  await writeOut(io, lines, flags);
  if (flags.output !== undefined) return report(io, lines.length, flags.output, flags);
  if (!flags.quiet) say(io, `strongroom: ${counted(lines.length, "variable")} of ${printable(file)}\n`);
}

const refusal =
  "an export holds the values unencrypted: confirm with --plaintext, or use strongroom backup, which keeps them sealed";

async function writeAll(io: Io, client: StrongroomClient, flags: Flags, bar: Progress): Promise<number> {
  const entries = await listSecrets(client, flags.prefix);
  if (entries.length === 0 && flags.prefix !== undefined && folderPrefix(flags.prefix) !== "") {
    throw new CommandFailure("notFound", await explainEmptyFolder(client, flags.prefix));
  }
  const content =
    flags.format === "json"
      ? asJson(client, entries, bar, (json) => (flags.output === undefined ? shownJson(json, io.stdout) : json))
      : await asLines(client, entries, { ...flags, format: flags.format }, bar);
  await writeOut(io, content, flags);
  return entries.length;
}

async function* asJson(
  client: StrongroomClient,
  entries: readonly SecretEntry[],
  bar: Progress,
  shown: (json: string) => string,
) {
  yield exportStart;
  let separator = "";
  for await (const secret of readSecrets(client, entries, bar)) {
    yield `${separator}${shown(exportRow(secret))}`;
    separator = ",\n";
  }
  yield exportEnd;
}

const writers: { readonly [F in Exclude<Format, "json">]: (name: string, value: string) => string | null } = {
  dotenv: dotenvLine,
  shell: (name, value) => (value.includes("\0") ? null : exportLines(name, value)),
};

/** Returns all lines, so that nothing is written when a value does not fit. @throws CommandFailure usage, conflict */
async function asLines(
  client: StrongroomClient,
  entries: readonly SecretEntry[],
  { format, name: naming, prefix = "" }: Flags & { readonly format: Exclude<Format, "json"> },
  bar: Progress,
): Promise<readonly string[]> {
  const paths = entries.map(({ path }) => path);
  const named = namesFor(paths, {
    naming,
    folder: folderPrefix(prefix),
    taken: new Set(),
    remedy: `choose fewer with --prefix, or use ${naming === "last" ? "--name path or " : ""}--format json`,
  });
  const names = new Map(named.map(({ name, path }) => [path, name]));
  const lines: string[] = [];
  const refused: string[] = [];
  for await (const secret of readSecrets(client, entries, bar)) {
    const line = writers[format](names.get(secret.path) ?? "", secretText(secret));
    if (line === null) refused.push(printable(secret.path));
    else lines.push(line);
  }
  if (refused.length === 0) return lines;
  throw new CommandFailure("usage", unwritable(refused, format));
}

function unwritable(paths: readonly string[], format: Format): string {
  const problem = format === "shell" ? "a NUL byte" : "characters that dotenv readers and shells read differently";
  const remedy = format === "shell" ? "--format json" : "--format shell or json";
  return `these values have ${problem}: ${paths.join(", ")}: use ${remedy}`;
}

/** Yields the secrets in the list's order. */
async function* readSecrets(client: StrongroomClient, entries: readonly SecretEntry[], bar: Progress) {
  const paths = entries.map(({ path }) => path);
  let done = 0;
  for await (const [path, secret] of secretsAt(client, paths)) {
    if (secret === undefined) throw await noSecretsAt(client, [path]);
    yield secret;
    bar.show(++done, entries.length);
  }
}

function report(io: Io, count: number, file: string, { json, quiet }: Flags): void {
  if (json) printJson(io, { ok: true, file, secrets: count });
  else if (!quiet) io.stdout.write(`${counted(count, "secret")} written to ${printable(file)}, unencrypted\n`);
}
