/** `strongroom serve`: the server as a process, with its settings, hardening, signals, start line and exit codes. */
import type { Command } from "commander";
import type { Settings } from "../../config/definitions.js";
import { type GivenFlags, givenSettingTexts, namedSettings, unknownVariables } from "../../config/settings.js";
import { missingProtections } from "../../hardening.js";
import { createLog, type Log, logLine } from "../../log.js";
import { LogOutput } from "../../log-output.js";
import { type Strongroom, stopMs } from "../../server/server-handle.js";
import { startStrongroom } from "../../server/strongroom.js";
import { givenSettings, withSettings } from "../kit/args/settings-flags.js";
import { settingsOfStart } from "../kit/args/start-settings.js";
import type { Io } from "../kit/io.js";
import { restartCommand } from "../service/started-by.js";

const details = `
STRONGROOM_TOKEN is the bearer token itself. It has no flag, since other users
can read a command's arguments. A flag takes precedence over its variable, and
that over the settings file (strongroom config).

exit codes: 0 stopped on request, 1 failed to start or crashed, 2 invalid
settings`;

export function define(command: Command, io: Io): void {
  command.description(
    "Starts the vault server. Once it listens, it prints one line with its address and the location of the token, the " +
      "certificate and the vault. SIGHUP reads the certificate again, SIGUSR2 locks the vault; SIGINT, SIGTERM and POST /v1/shutdown lock it and stop the " +
      "server. Logs go to standard error, one JSON object per line.",
  );
  withSettings(command)
    .addHelpText("after", details)
    .action(async () => {
      const { flags, problems } = givenSettings(command);
      const settings = await settingsOfStart(flags, io.env, problems);
      await serve(io, flags, settings).catch((error) => endOnFailure(io, error));
      io.exit(0);
    });
}

/** Ends the process after a failed start, also when something stays open. */
function endOnFailure(io: Io, error: unknown): never {
  io.clock.after(stopMs, () => io.exit());
  throw error;
}

/** Linux keeps the environment that a process was started with: it cannot be wiped. */
const exposedToken =
  "STRONGROOM_TOKEN stays readable in /proc/PID/environ while the server runs: use the token file in the home, or STRONGROOM_TOKEN_FILE";

/** Serves until it is stopped. @throws StartError */
async function serve(io: Io, flags: GivenFlags, settings: Settings): Promise<void> {
  const tokenInEnvironment = Boolean(io.env["STRONGROOM_TOKEN"]);
  delete io.env["STRONGROOM_TOKEN"]; // nothing that runs later needs it
  io.umask(0o077);
  for (const stream of [io.stdout, io.stderr]) stream.removeAllListeners("error").on("error", () => {}); // the reader is gone
  const [output, logOutput] = [new LogOutput(1, () => ""), new LogOutput(2, (count) => droppedLine(io, count))];
  const log = createLog(settings.logLevel, (line) => logOutput.write(line), io.clock.now);
  for (const hint of await missingProtections()) log.warn({ event: "not-hardened", hint });
  if (tokenInEnvironment) log.warn({ event: "token-in-environment", hint: exposedToken });
  for (const name of unknownVariables(io.env)) {
    log.warn({ event: "unknown-variable", hint: `${name} is not a setting: strongroom serve --help lists them` });
  }
  logWarnings(io, log);
  io.events.on("SIGHUP", () => {}); // a terminal that closes while the server starts does not end it
  const given = givenSettingTexts(flags, io.env);
  const start = { settings: namedSettings(settings), given, restartedBy: restartCommand(io) };
  const strongroom = await startStrongroom(settings, { log, start });
  logCrashes(io, log); // before, a crash is a failed start, whose message is not a line of the log
  for (const signal of ["SIGINT", "SIGTERM"] as const) io.events.on(signal, () => void strongroom.stop());
  io.events.on("SIGHUP", () => void strongroom.reloadCertificate());
  io.events.on("SIGUSR2", () => void strongroom.lock()); // works even when no connection does
  output.write(startLine(strongroom));
  const began = await strongroom.stopping.then(() => io.clock.elapsed());
  await strongroom.stopped;
  const left = Math.max(0, stopMs - (io.clock.elapsed() - began));
  await Promise.all([output.flush(left), logOutput.flush(left)]);
}

function droppedLine({ clock }: Io, count: number): string {
  return logLine("warn", clock.now(), {
    event: "log-lines-dropped",
    count,
    hint: "their reader was too slow or paused",
  });
}

function startLine({ url, tokenSource, certificateFile, vaultPath, vaultPort }: Strongroom): string {
  const forClients = vaultPort === null ? "" : `, Vault's clients on port ${vaultPort}`;
  const places = `token in ${tokenSource}, certificate ${certificateFile}, vault ${vaultPath}${forClients}`;
  return `strongroom listens on ${url}, ${places}\n`;
}

/** DANGER: Node prints the text of its warnings, which may quote a request. */
function logWarnings(io: Io, log: Log): void {
  io.events.removeAllListeners("warning");
  io.events.on("warning", (error) => log.warn({ event: "warning", error }));
}

/** DANGER: the text of an unexpected error may quote anything, so only the log's fields of it are printed. */
function logCrashes(io: Io, log: Log): void {
  io.events.removeAllListeners("uncaughtException");
  io.events.on("uncaughtException", (error) => {
    log.error({ event: "crashed", error });
    io.exit(1);
  });
}
