/** `strongroom inject`: a template filled with secrets. */
import type { Command } from "commander";
import { type ConnectionFlags, withClient, withConnection } from "../session/connection.js";
import { fetchSecrets } from "../session/fetch-secrets.js";
import { readInput } from "../session/input-file.js";
import { counted, printable, printJson } from "../session/output.js";
import { checkOutput, checkTarget, type OutputFileFlags, withOutputFile, writeOut } from "../session/plaintext-file.js";
import { cutTemplate, fillTemplate, pathsIn } from "../session/references.js";

type Flags = ConnectionFlags & OutputFileFlags & { readonly input?: string; readonly dryRun?: true };

const details = `
A reference is {{ strongroom://app/db/password }}, on one line. It is replaced
with the secret's value as it is, without quoting or escaping. The path is
percent-encoded as in a URL (% is %25, braces are %7B and %7D). Every other byte
is kept, other double braces included. If secrets are missing, all of them are
listed and nothing is written.
`;

export function define(command: Command): void {
  command
    .description("Fills the references in a template with secrets.")
    .option("-i, --input <file>", "the template; standard input by default, or with -")
    .option("--dry-run", "check that every secret exists, and write nothing")
    .addHelpText("after", details);
  withConnection(withOutputFile(command)).action(inject);
}

async function inject(flags: Flags): Promise<void> {
  const { input, output, dryRun } = flags;
  await (dryRun ? checkTarget(flags) : checkOutput(flags));
  const name = input === undefined ? "the template" : printable(input);
  const parts = cutTemplate(
    await readInput(input ?? "-", `the template ${printable(input ?? "-")}`),
    (line) => `${name}, line ${line}`,
  );
  const paths = new Set(pathsIn(parts));
  const secrets = await withClient(flags, (client) => fetchSecrets(client, paths));
  if (!dryRun) await writeOut([fillTemplate(parts, (path) => secrets.get(path)?.reveal() ?? "")], flags);
  if (output === undefined && !dryRun) return;
  if (flags.json) printJson({ ok: true, dryRun: dryRun === true, file: output ?? null, secrets: paths.size });
  else if (!flags.quiet) process.stdout.write(textFor(paths.size, dryRun ? undefined : output));
}

function textFor(count: number, file: string | undefined): string {
  const secrets = counted(count, "secret");
  return file === undefined
    ? `${secrets} found; a dry run: nothing was written\n`
    : `${secrets} written to ${printable(file)}\n`;
}
