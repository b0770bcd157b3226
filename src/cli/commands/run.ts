/** `strongroom run`: a command with secrets as environment variables. */
import { type Command, InvalidArgumentError } from "commander";
import { runChild } from "../run/child-process.js";
import { launch } from "../run/launch.js";
import { minMaskedBytes } from "../run/output-mask.js";
import { isVariableName, type Named } from "../run/variable-names.js";
import { type ConnectionFlags, withConnection } from "../session/connection.js";
import { CommandFailure } from "../session/exit-codes.js";
import { RepeatableOption } from "../session/flags.js";
import { canonicalPath } from "../session/references.js";

type Flags = ConnectionFlags & {
  readonly prefix?: string;
  readonly set?: readonly Named[];
  readonly envFile?: readonly string[];
  readonly mask?: true;
  readonly quiet?: true;
};

const details = `
variables, from lowest to highest precedence: the current environment;
--env-file, in the order given; --prefix; --set.
  --prefix app/ gives app/db/password the name PASSWORD: the last segment in
  capitals, with _ for characters that a name cannot have. Two paths with the
  same name are an error, unless --set uses that name; a path in --set gets only
  the names given there.
  In an env file, NAME=strongroom://path and
  NAME="text {{ strongroom://path }} text" are filled from the vault; everything
  else is kept as it is. STRONGROOM_TOKEN is removed, unless one of these flags
  sets it.

The command runs without a shell, on the same standard streams, and receives the
signals INT, TERM, HUP, QUIT, USR1, USR2 and WINCH. Its exit status is returned:
128 + n if signal n ended it, 127 if it is not found, 126 if it cannot be
executed. If it was not started, the exit code is one of strongroom's own, with
a message.

--mask replaces values of ${minMaskedBytes} bytes or more with *** in the command's output.
Encoded values (base64, JSON) are not found. The command's output is then a
pipe, not a terminal.
`;

export function define(command: Command): void {
  const set = new RepeatableOption("--set <NAME=path>", "this secret under this name; may be repeated");
  const envFile = new RepeatableOption("-e, --env-file <file>", "variables from a dotenv file; may be repeated");
  command
    .description("Runs a command with secrets as environment variables.")
    .usage("[flags] -- command [arguments...]")
    .argument("<command...>", "the command and its arguments, after --")
    .option("--prefix <prefix>", "all secrets whose path starts with this; app/ is a whole folder")
    .addOption(set.argParser(readNamed))
    .addOption(envFile.argParser(append))
    .option("--mask", "replace the values in the command's output with ***")
    .option("-q, --quiet", "print nothing but errors")
    .addHelpText("after", details);
  withConnection(command).passThroughOptions().action(run);
}

async function run(command: readonly string[], flags: Flags): Promise<void> {
  const { prefix, set = [], envFile: envFiles = [], mask = false, quiet = false, ...connection } = flags;
  if (prefix === undefined && set.length === 0 && envFiles.length === 0) {
    throw new CommandFailure("usage", "no secrets are chosen: use --prefix, --set or --env-file");
  }
  const sources = { prefix, set, envFiles };
  process.exitCode = await runChild(() => launch(command, { sources, connection, mask, quiet }));
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
