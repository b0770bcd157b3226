/** `strongroom up`: a server in the background, started unless one runs, or restarted with other settings. */
import { type Command, Option } from "commander";
import { StrongroomClient } from "../../client/client.js";
import { definitions, type Settings } from "../../config/definitions.js";
import type { GivenFlags } from "../../config/settings.js";
import { homeAt, quoted } from "../../files/home.js";
import { findHolder } from "../../storage/files/claim.js";
import { givenSettings, warnOfUnknownVariables, withSettings } from "../kit/args/settings-flags.js";
import { clientEnvironment, settingsOfStart } from "../kit/args/start-settings.js";
import { startInBackground } from "../kit/connection/background-server.js";
import { compareWithRunning, type Difference, type Differences } from "../kit/connection/running-settings.js";
import { stopServer } from "../kit/connection/stop-server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { printable, report, say } from "../kit/output.js";

const details = `
The server runs in a session of its own, so that it survives the terminal; it
does not start again by itself (strongroom service install). Its log is
serve.log in the home. strongroom shutdown stops it. The flags are those of
strongroom serve; settings that are to stay belong into the home's file, which
strongroom config writes. If a server runs already for this home, nothing is
done: a flag or variable that it does not have is then exit code 7, and
--restart applies it.

With STRONGROOM_AUTOSTART=1 in the environment, or --autostart, every command
that finds no server for its home starts one so.`;

export function define(command: Command, io: Io): void {
  command.description("Starts the vault server in the background and returns once it listens.");
  withSettings(command)
    .addOption(
      new Option("--restart", "restart a running server with the settings of this call, which locks the vault"),
    )
    .addHelpText("after", details)
    .action(() => up(io, command));
}

async function up(io: Io, command: Command): Promise<void> {
  const { flags, problems } = givenSettings(command);
  const settings = await settingsOfStart(flags, io.env, problems);
  const holder = await findHolder(homeAt(settings.home).vault);
  if (holder === null) return start(io, flags, settings);
  const differences = await compareWithRunning(settings, flags, io.env);
  if (command.getOptionValue("restart") === true) return restart(io, flags, settings, holder.pid, differences);
  if (differences !== null && differences.given.length > 0) throw withOtherSettings(holder.pid, flags, differences);
  report(io, {}, {}, `a server is already running (pid ${holder.pid})`);
  for (const line of differences === null ? [] : notesOn(differences)) report(io, {}, {}, line);
}

async function start(io: Io, flags: GivenFlags, settings: Settings): Promise<void> {
  warnOfUnknownVariables(io);
  const { pid, log, address } = await startInBackground(io, flags);
  const next = (await isInitialized(io, settings.home)) ? "unlock" : "init";
  report(io, {}, {}, `the server runs in the background (pid ${pid}, ${address}; log: ${printable(log)})`);
  report(io, {}, {}, `next: strongroom ${next}`);
}

/** @throws CommandFailure conflict, for a server that a service manager runs */
async function restart(
  io: Io,
  flags: GivenFlags,
  settings: Settings,
  pid: number,
  differences: Differences | null,
): Promise<void> {
  if (differences !== null && differences.restartedBy !== null) {
    throw managedServerFailure(pid, differences.restartedBy, differences);
  }
  const lost = differences === null ? [] : differences.onlyThatStart;
  const without = lost.length === 0 ? "" : `; without ${list(lost.map(({ name, running }) => `${name} ${running}`))}`;
  say(io, `restarting the server (pid ${pid}), which locks the vault${without}\n`);
  await stopServer(io, { home: settings.home });
  await start(io, flags, settings).catch((error: unknown) => {
    if (!(error instanceof CommandFailure)) throw error;
    throw new CommandFailure(error.exit, `the server has stopped and does not start again: ${error.message}`);
  });
}

function withOtherSettings(pid: number, flags: GivenFlags, differences: Differences): CommandFailure {
  const { given, restartedBy } = differences;
  if (restartedBy !== null) return managedServerFailure(pid, restartedBy, differences);
  const again = `strongroom up --restart${flagWords(flags)}`;
  const problem = `a server is already running (pid ${pid}), and not with ${list(given.map(asDifference))}`;
  return new CommandFailure("conflict", printable(`${problem}: ${again}  applies that and locks the vault`));
}

/** A server that stops by itself would be started again, or not at all, by the manager with its own variables. */
function managedServerFailure(pid: number, restartedBy: string, { given, inFile }: Differences): CommandFailure {
  const problem = `a service manager runs the server (pid ${pid})`;
  const writes = given.map(({ name, wanted }) => `strongroom config set ${name} ${quoted(wanted)}`);
  const changed = [...given, ...inFile].map(asDifference);
  const differs = changed.length === 0 ? "" : `, and not with ${list(changed)}`;
  const remedy = [...writes, restartedBy].join("  and then  ");
  const own = "; variables of the service itself win over the file: strongroom service install  writes them again";
  return new CommandFailure(
    "conflict",
    printable(`${problem}${differs}: ${remedy}  applies it and locks the vault${own}`),
  );
}

function notesOn({ onlyThatStart, inFile, restartedBy }: Differences): string[] {
  const restartWith = restartedBy ?? "strongroom up --restart";
  return [
    ...(restartedBy === null ? onlyThatStart : []).map(
      ({ name, running }) =>
        `${name} ${running} was given only to this start: strongroom config set ${name} ${quoted(running)}  keeps it`,
    ),
    ...inFile.map(
      (each) => `the server does not have ${asDifference(each)}: ${restartWith}  applies the file and locks the vault`,
    ),
  ];
}

function asDifference({ name, running, wanted }: Difference): string {
  return `${name} ${wanted} (it has ${running})`;
}

function list(texts: readonly string[]): string {
  return texts.join(", ");
}

function flagWords(flags: GivenFlags): string {
  const words = Object.entries(flags).map(([name, text]) => {
    return ` --${definitions[name as keyof Settings].flag}=${quoted(text)}`;
  });
  return words.join("");
}

async function isInitialized(io: Io, home: string): Promise<boolean> {
  const client = new StrongroomClient({ home, environment: await clientEnvironment(io.env, home) });
  try {
    return (await client.status()).initialized;
  } finally {
    await client.close();
  }
}
