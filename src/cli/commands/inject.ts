/** `strongroom inject`: a template filled with secrets. */
import type { Command } from "commander";
import { type Reference, revealReference } from "../kit/args/fields.js";
import { folderPrefix } from "../kit/args/paths.js";
import { cutTemplate, fillTemplate, needsBase, type Part, pathsIn, referencesIn } from "../kit/args/references.js";
import { fetchSecrets } from "../kit/connection/secrets.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { checkOutput, checkTarget, type OutputFileFlags, withOutputFile, writeOut } from "../kit/output/output-file.js";
import { counted, printable, printJson } from "../kit/output.js";
import { readInput } from "../kit/prompts/input.js";
import { findProject } from "../run/project.js";

type Flags = ConnectionFlags & OutputFileFlags & { readonly input?: string; readonly dryRun?: true };

const details = `
A reference is {{ strongroom://app/db/password }}, on one line. It is replaced
with the secret's value as it is, without quoting or escaping. The path is
percent-encoded as in a URL (% is %25, # is %23, braces are %7B and %7D); a #
behind it names a field of a JSON value: strongroom://app/db#user. Every other
byte is kept, also other double braces; those with a reference in another form,
as {{- strongroom://path -}}, are an error. In {{ strongroom://./db/password }},
./ is the prefix of the project file: see strongroom help allow. If secrets are
missing, all of them are listed and nothing is written.`;

export function define(command: Command, io: Io): void {
  command
    .description("Fills the references in a template with secrets.")
    .option("-i, --input <file>", "the template; standard input by default, or with -")
    .option("--dry-run", "check that every secret exists, and write nothing")
    .addHelpText("after", details);
  withConnection(withOutputFile(command)).action((flags) => inject(io, flags));
}

async function inject(io: Io, flags: Flags): Promise<void> {
  const { input, output, dryRun } = flags;
  await (dryRun ? checkTarget(flags) : checkOutput(flags));
  const parts = await readTemplate(io, input);
  const paths = new Set(pathsIn(parts));
  const secrets = await withClient(io, flags, (client) => fetchSecrets(client, paths));
  const reveal = (reference: Reference) => {
    const secret = secrets.get(reference.path);
    return secret === undefined ? "" : revealReference(secret, reference);
  };
  if (dryRun) for (const reference of referencesIn(parts)) reveal(reference);
  if (!dryRun) await writeOut(io, [fillTemplate(parts, reveal)], flags);
  if (output === undefined && !dryRun) return;
  if (flags.json) printJson(io, { ok: true, dryRun: dryRun === true, file: output ?? null, secrets: paths.size });
  else if (!flags.quiet) io.stdout.write(textFor(paths.size, dryRun ? undefined : output));
}

async function readTemplate(io: Io, input: string | undefined): Promise<Part[]> {
  const name = input === undefined ? "the template" : printable(input);
  const template = await readInput(io, input ?? "-", `the template ${printable(input ?? "-")}`);
  const base = needsBase(template) ? await projectPrefix(io) : null;
  return cutTemplate(template, (line) => `${name}, line ${line}`, base);
}

async function projectPrefix(io: Io): Promise<string> {
  const project = await findProject(io);
  const prefix = project?.sources.prefix;
  if (prefix !== undefined) return folderPrefix(prefix);
  const remedy = "write whole paths, or set prefix in a project file (strongroom help allow)";
  throw new CommandFailure("usage", `the template has paths that begin with ./, but there is no prefix: ${remedy}`);
}

function textFor(count: number, file: string | undefined): string {
  const secrets = counted(count, "secret");
  return file === undefined
    ? `${secrets} found; a dry run: nothing was written\n`
    : `${secrets} written to ${printable(file)}\n`;
}
