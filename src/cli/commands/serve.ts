/** Owns the server as a process: settings, hardening, signals, the start line, exit codes. */
import type { Command } from "commander";
import { readSettings } from "../../config/settings.js";
import { weaknesses } from "../../hardening.js";
import { createLog, type Log } from "../../log.js";
import type { Strongroom } from "../../server/server-handle.js";
import { startStrongroom } from "../../server/strongroom.js";
import { serveHelp } from "../session/settings-help.js";

/** The table of settings reads the flags, so that all problems are told at once: the parser passes them through. */
export function define(command: Command): void {
  command.argument("[flags...]").allowUnknownOption().helpOption("-h, --help");
  command.helpInformation = serveHelp;
  command.action(async (flags: readonly string[]) => {
    await serve(flags);
    process.exit(0);
  });
}

/** Linux keeps the environment that a process was started with: it cannot be wiped. */
const exposedToken =
  "STRONGROOM_TOKEN stays readable in /proc/PID/environ while the server runs: use the token file in the home, or STRONGROOM_TOKEN_FILE";

/** Serves until it is stopped. @throws StartError */
async function serve(args: readonly string[]): Promise<void> {
  const settings = readSettings(args, process.env);
  const tokenInEnvironment = Boolean(process.env["STRONGROOM_TOKEN"]);
  delete process.env["STRONGROOM_TOKEN"]; // nothing that runs later needs it
  process.umask(0o077);
  const log = createLog(settings.logLevel, (line) => process.stderr.write(line), Date.now);
  for (const hint of await weaknesses()) log.warn({ event: "not-hardened", hint });
  if (tokenInEnvironment) log.warn({ event: "token-in-environment", hint: exposedToken });
  dieWithoutWords(log);
  warnWithoutWords(log);
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners("error").on("error", () => {}); // its reader has gone
  const strongroom = await startStrongroom(settings, { log });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => void strongroom.stop());
  process.stdout.write(startLine(strongroom));
  await strongroom.stopped;
}

function startLine({ url, tokenSource, certificateFile, vaultPath }: Strongroom): string {
  return `strongroom listens on ${url}, token in ${tokenSource}, certificate ${certificateFile}, vault ${vaultPath}\n`;
}

/** Node prints the text of its warnings, which may quote a request. */
function warnWithoutWords(log: Log): void {
  process.removeAllListeners("warning");
  process.on("warning", (error) => log.warn({ event: "warning", error }));
}

/** An error that nobody awaited ends the process; its text, which may quote anything, is not printed. */
function dieWithoutWords(log: Log): void {
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", (error) => {
    log.error({ event: "crashed", error });
    process.exit(1);
  });
}
