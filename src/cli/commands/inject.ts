/** Owns `strongroom inject`: where the template is from, and what is said when it is filled. */
import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import type { Command } from "commander";
import { systemCode } from "../../errors.js";
import { reasonOf } from "../../files/file-problem.js";
import { type ConnectionFlags, withClient, withConnection } from "../session/connection.js";
import { CommandFailure } from "../session/exit-codes.js";
import { fetchSecrets } from "../session/fetch-secrets.js";
import { printable, printJson } from "../session/output.js";
import { checkOutput, checkTarget, type OutputFileFlags, withOutputFile, writeOut } from "../session/plaintext-file.js";
import { cutTemplate, fillTemplate, pathsIn } from "../session/references.js";

type Flags = ConnectionFlags & OutputFileFlags & { readonly input?: string; readonly dryRun?: true };

const details = `
A reference is {{ strongroom://app/db/password }}, on one line, and becomes the
secret's value as it is: nothing is quoted or escaped. The path is spelled as in
a URL (% is %25, braces are %7B and %7D). Everything else stays, byte by byte,
other double braces too. When a secret is missing, all that are missing are
named, and nothing is written.
`;

export function define(command: Command): void {
  command
    .description("Fills the references in a template with secrets.")
    .option("-i, --input <file>", "the template; - or nothing is standard input")
    .option("--dry-run", "see that every secret is there, and write nothing")
    .addHelpText("after", details);
  withConnection(withOutputFile(command)).action(inject);
}

async function inject(flags: Flags): Promise<void> {
  const { input, output, dryRun } = flags;
  await (dryRun ? checkTarget(flags) : checkOutput(flags));
  const name = input === undefined ? "the template" : printable(input);
  const parts = cutTemplate(await readInput(input), (line) => `${name}, line ${line}`);
  const paths = new Set(pathsIn(parts));
  const secrets = await withClient(flags, (client) => fetchSecrets(client, paths));
  if (!dryRun) await writeOut([fillTemplate(parts, (path) => secrets.get(path)?.reveal() ?? "")], flags);
  if (output === undefined && !dryRun) return;
  if (flags.json) printJson({ ok: true, dryRun: dryRun === true, file: output ?? null, secrets: paths.size });
  else if (!flags.quiet) process.stdout.write(textFor(paths.size, dryRun ? undefined : output));
}

function textFor(count: number, file: string | undefined): string {
  const secrets = `${count} ${count === 1 ? "secret" : "secrets"}`;
  return file === undefined ? `${secrets}: all are there\n` : `${secrets} filled into ${printable(file)}\n`;
}

async function readInput(file: string | undefined): Promise<Buffer> {
  if (file === undefined || file === "-") return buffer(process.stdin);
  try {
    return await readFile(file);
  } catch (error) {
    throw new CommandFailure("usage", `the template ${printable(file)} cannot be read${reasonOf(systemCode(error))}`);
  }
}
