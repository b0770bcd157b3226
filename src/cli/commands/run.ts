/** `strongroom run`: a command with secrets as environment variables. */
import { constants } from "node:os";
import { type Command, InvalidArgumentError, Option } from "commander";
import { duration } from "../../config/readers.js";
import { onlyWith, RepeatableOption } from "../kit/args/args.js";
import { pathOrReference } from "../kit/args/references.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { printable, printRows } from "../kit/output.js";
import { runChild } from "../kit/programs/child-process.js";
import { minMaskedBytes } from "../kit/programs/output-mask.js";
import type { Sources } from "../run/environment.js";
import { launch } from "../run/launch.js";
import { type Named, type Naming, namings, problemOfName } from "../run/variables.js";

type Flags = ConnectionFlags & {
  readonly prefix?: string;
  readonly name?: Naming;
  readonly set?: readonly Named[];
  readonly envFile?: readonly string[];
  readonly mask?: true;
  readonly printNames?: true;
  readonly watch?: true;
  readonly interval?: number;
  readonly grace?: number;
  readonly signal?: NodeJS.Signals;
  readonly quiet?: true;
};

const details = `
Without --prefix, --set and --env-file, the project file .strongroom.toml of
this directory or one above chooses the secrets: see strongroom help allow.

variables, from lowest to highest precedence: the current environment;
--env-file, in the order given; --prefix; --set.
  --prefix app/ names each variable by the last segment of its path: app/DB_URL
  becomes DB_URL. A segment that is not a valid name is mapped: app/api-key
  becomes API_KEY. --name path uses the whole path in the folder:
  app/db1/password becomes DB1_PASSWORD. Two paths with the same name are an
  error, unless --set uses that name; a path in --set gets only the names given
  there. --print-names shows the result. A secret gets a name that changes how
  programs run, such as PATH, LD_PRELOAD and NODE_OPTIONS, only by --set. Names
  that shells use themselves, such as RANDOM and PWD, cannot be set.
  In an env file, NAME=strongroom://path and
  NAME="text {{ strongroom://path }} text" are filled from the vault; everything
  else is kept as it is. STRONGROOM_TOKEN is removed, unless one of these flags
  sets it.

The command runs without a shell, on the same standard streams, and receives the
signals INT, TERM, HUP, QUIT, USR1, USR2 and WINCH. Its exit status is returned:
128 + n if signal n ended it, 127 if it is not found, 126 if it cannot be
executed. If it was not started, the exit code is one of strongroom's own, with
a message.

The command inherits open descriptors and ignored signals, as of nohup, on
Linux; the latter need an env with --ignore-signal (GNU), else a warning says
so: let nohup start the command then. An argument that is not UTF-8 is refused,
and a variable that is not is left out with a warning: a script or an env file
of the command's own can set it.

The waiting strongroom process holds neither the values nor the token: another
one fetches them and turns into the command. (Before Node 22.15 a process cannot
do that: the second one then stays, with the values, until the command ends.)
The command holds the values in its environment, where your own processes and
root can read them.

--watch restarts the command when one of its secrets changes: TERM, and after
--grace KILL. With --prefix, a new or deleted secret in the folder is a change.
A change is noticed within --interval, by etags in lists, so the token must be
able to list; these lists do not delay the lock after idle time. Changes that
follow each other within a second restart it once. While the server cannot be
asked, or a secret is missing, the command keeps running; one that has just been
ended is started again when it can be. With --signal HUP it gets this signal
instead, and keeps the environment that it has. When it ends by itself,
strongroom ends with its exit status. The waiting process then holds the token,
but no value.

--mask replaces values of ${minMaskedBytes} bytes or more, and lines of 8 bytes or more of
values with several lines, with *** in the command's output. Values printed in
another encoding (base64, JSON) are not masked. The command's output is then a
pipe, not a terminal, and the waiting process holds the values, to recognize
them.`;

export function define(command: Command, io: Io): void {
  const set = new RepeatableOption("--set <NAME=path>", "this secret under this name; may be repeated");
  const envFile = new RepeatableOption("-e, --env-file <file>", "variables from a dotenv file; may be repeated");
  command
    .description("Runs a command with secrets as environment variables.")
    .usage("[flags] -- command [arguments...]")
    .argument("[command...]", "the command and its arguments, after --")
    .option("--prefix <folder>", "all secrets in this folder")
    .addOption(
      new Option("--name <how>", "name the variables of --prefix by the last segment, or by the path").choices(namings),
    )
    .addOption(set.argParser(readNamed))
    .addOption(envFile.argParser(append))
    .option("--print-names", "print the variables' names and sources, and run nothing")
    .option("--watch", "restart the command when one of its secrets changes")
    .addOption(
      new Option("--signal <name>", "with --watch: send it this signal instead, such as HUP").argParser(readSignal),
    )
    .addOption(
      new Option("--interval <duration>", "with --watch: refresh interval (default: 2s)").argParser(
        duration(86_400_000),
      ),
    )
    .addOption(
      new Option("--grace <duration>", "with --watch: time to end after TERM (default: 10s)").argParser(
        duration(86_400_000),
      ),
    )
    .option("--mask", "replace the values in the command's output with ***")
    .option("-q, --quiet", "print nothing but errors")
    .addHelpText("after", details);
  for (const name of ["signal", "interval", "grace"]) onlyWith(command, name, "watch");
  withConnection(onlyWith(command, "name", "prefix"))
    .passThroughOptions()
    .action((command, flags) => run(io, command, flags));
}

async function run(io: Io, command: readonly string[], flags: Flags): Promise<void> {
  const {
    prefix,
    name: naming,
    set = [],
    envFile: envFiles = [],
    mask = false,
    quiet = false,
    printNames,
    watch,
    interval: intervalMs = 2_000,
    grace: graceMs = 10_000,
    signal = null,
    ...connection
  } = flags;
  const given = { prefix, naming, set, envFiles: envFiles.map((file) => ({ file })) };
  const sources = prefix === undefined && set.length === 0 && envFiles.length === 0 ? await ofProject(io) : given;
  if (printNames) return printVariables(io, sources, quiet ? { ...connection, quiet } : connection);
  if (command.length === 0) throw new CommandFailure("usage", "no command given: add it after --");
  const start = () => launch(io, command, { sources, connection, mask, quiet, isRepeated: watch === true });
  if (!watch) {
    io.exitCode = await runChild(io, start);
    return;
  }
  const { runWatched } = await import("../run/watch.js"); // with the client
  io.exitCode = await runWatched(io, start, { sources, connection, quiet, signal, intervalMs, graceMs });
}

function readSignal(text: string): NodeJS.Signals {
  const name = `SIG${text.toUpperCase().replace(/^SIG/, "")}`;
  if (name in constants.signals) return name as NodeJS.Signals;
  throw new InvalidArgumentError("must be a signal's name, such as HUP or USR1");
}

/** Loaded only when needed: the process that waits for a command stays small. */
async function ofProject(io: Io): Promise<Sources> {
  const { findProject } = await import("../run/project.js");
  const project = await findProject(io);
  if (project !== null) return project.sources;
  const flags = "--prefix, --set or --env-file before the command";
  const ways = `choose them with ${flags}, or with a project file (strongroom help allow)`;
  throw new CommandFailure("usage", `no secrets chosen: ${ways}`);
}

/** Loaded only here: the process that waits for a command needs no client. */
async function printVariables(io: Io, sources: Sources, connection: ConnectionFlags): Promise<void> {
  const { listVariables } = await import("../run/environment.js");
  const variables = await listVariables(sources, (work) => withClient(io, connection, work));
  const winners = new Map(variables.map(({ name, where }) => [name, where]));
  const separator = io.stdout.isTTY ? "  " : "\t";
  for (const [name, where] of winners)
    printRows(io, `${name}${separator}${io.stdout.isTTY ? printable(where) : where}\n`);
}

function readNamed(text: string, earlier: readonly Named[] = []): Named[] {
  const [name = "", ...rest] = text.split("=");
  if (name === "" || rest.length === 0) throw new InvalidArgumentError("must be NAME=path");
  const problem = problemOfName(name);
  if (problem !== null) throw new InvalidArgumentError(problem);
  if (earlier.some((other) => other.name === name)) throw new InvalidArgumentError(`sets ${name} twice`);
  const { field, ...reference } = pathOrReference(rest.join("="), `--set ${name}`);
  return [...earlier, { name, ...reference, ...(field !== null && { field }) }];
}

function append(text: string, earlier: readonly string[] = []): string[] {
  return [...earlier, text];
}
