/** Owns the server as a process: settings, hardening, signals, the start line, exit codes. */
import { readSettings } from "../config/settings.js";
import { createLog, type Log } from "../log.js";
import { hardenProcess } from "../server/hardening.js";
import { type Strongroom, startStrongroom } from "../server/strongroom.js";

/** Serves until it is stopped. @throws StartError */
export async function serve(args: readonly string[]): Promise<void> {
  const settings = readSettings(args, process.env);
  delete process.env["STRONGROOM_TOKEN"]; // nothing that runs later needs it
  const log = createLog(settings.logLevel, (line) => process.stderr.write(line), Date.now);
  for (const hint of await hardenProcess()) log.warn({ event: "not-hardened", hint });
  dieWithoutWords(log);
  warnWithoutWords(log);
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {}); // its reader has gone
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
  process.on("uncaughtException", (error) => {
    log.error({ event: "crashed", error });
    process.exit(1);
  });
}
