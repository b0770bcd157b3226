/** Owns `strongroom run`: its flags, and what it says when the command's variables cannot be made. */
import { type Command, InvalidArgumentError } from "commander";
import { runChild } from "../run/child-process.js";
import { buildEnvironment, type Environment } from "../run/environment.js";
import { maskingStream, minMaskedBytes } from "../run/output-mask.js";
import { isVariableName, type Named } from "../run/variable-names.js";
import { type ConnectionFlags, withClient, withConnection } from "../session/connection.js";
import { CommandFailure } from "../session/exit-codes.js";
import { RepeatableOption } from "../session/flags.js";
import { printable } from "../session/output.js";
import { canonicalPath } from "../session/references.js";

type Flags = ConnectionFlags & {
  readonly prefix?: string;
  readonly set?: readonly Named[];
  readonly envFile?: readonly string[];
  readonly mask?: true;
  readonly quiet?: true;
};

const details = `
variables, later ones win: the environment there is; --env-file, in the order
given; --prefix; --set.
  --prefix app/ gives app/db/password the name PASSWORD: the last segment in
  capitals, with _ for what a name cannot have. Two paths that would have one
  name are an error, unless --set has that name; a path that --set names has
  that name alone.
  In an env file, NAME=strongroom://path and
  NAME="text {{ strongroom://path }} text" are filled from the vault, and
  everything else is passed on as it is. STRONGROOM_TOKEN is not handed on,
  unless one of these flags sets it.

the command runs without a shell, with this command's standard streams, and gets
the signals INT, TERM, HUP, QUIT, USR1, USR2 and WINCH. Its exit status is
passed on: 128 + n when signal n ended it, 127 when it is not found, 126 when it
cannot be executed. When it could not be tried, the exit code is one of
strongroom's own, and a message says so.

--mask shows values as *** in the command's output, if they have ${minMaskedBytes} bytes or
more. Other spellings of a value (base64, JSON) are not found; the command's
output is then a pipe and not a terminal.
`;

export function define(command: Command): void {
  const set = new RepeatableOption("--set <NAME=path>", "this secret under this name; may be repeated");
  const envFile = new RepeatableOption("-e, --env-file <file>", "variables from a dotenv file; may be repeated");
  command
    .description("Runs a command with secrets as environment variables.")
    .usage("[flags] -- command [arguments...]")
    .argument("<command...>", "the command and its arguments, behind --")
    .option("--prefix <prefix>", "all secrets whose path begins with this; app/ is all of a folder")
    .addOption(set.argParser(readNamed))
    .addOption(envFile.argParser(append))
    .option("--mask", "hide the values in the command's output")
    .option("-q, --quiet", "print nothing but errors")
    .addHelpText("after", details);
  withConnection(command).passThroughOptions().action(run);
}

async function run(command: readonly string[], flags: Flags): Promise<void> {
  const { prefix, set = [], envFile: envFiles = [], mask, quiet } = flags;
  if (prefix === undefined && set.length === 0 && envFiles.length === 0) {
    throw new CommandFailure("usage", "there is nothing to hand on: use --prefix, --set or --env-file");
  }
  const environment = await buildEnvironment({ prefix, set, envFiles }, (work) => withClient(flags, work));
  if (mask && !quiet) process.stderr.write(shortOnes(environment));
  const values = environment.secrets.map(({ value }) => value);
  const filters = mask ? { stdout: maskingStream(values), stderr: maskingStream(values) } : null;
  const { status, problem } = await runChild(command, environment.variables, filters);
  if (problem !== null) process.stderr.write(`strongroom: ${printable(problem)}\n`);
  process.exitCode = status;
}

function shortOnes({ secrets }: Environment): string {
  const short = secrets.filter(({ value }) => value !== "" && Buffer.byteLength(value) < minMaskedBytes);
  if (short.length === 0) return "";
  const names = short.map(({ name }) => name).join(", ");
  return `strongroom: not hidden, as shorter than ${minMaskedBytes} bytes: ${names}\n`;
}

function readNamed(text: string, earlier: readonly Named[] = []): Named[] {
  const [name = "", ...rest] = text.split("=");
  if (!isVariableName(name) || rest.length === 0) throw new InvalidArgumentError("must be NAME=path");
  if (earlier.some((other) => other.name === name)) throw new InvalidArgumentError(`sets ${name} twice`);
  return [...earlier, { name, path: canonicalPath(rest.join("="), `--set ${name}`) }];
}

function append(text: string, earlier: readonly string[] = []): string[] {
  return [...earlier, text];
}
