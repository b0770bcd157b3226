/**
 * Work that leaves something behind at the server unless it ends in order, such as the token of a session: signals that would
 * end the process, and the end of its output, wait until it has cleaned up.
 */
import { CommandFailure } from "../errors.js";
import type { Io } from "../io.js";
import { hangUpIgnored } from "./inherited.js";

const endings = ["SIGINT", "SIGTERM", "SIGQUIT", ...(hangUpIgnored ? [] : (["SIGHUP"] as const))] as const;

/** Runs what handles signals itself, such as a child. @throws CommandFailure aborted when a signal came before */
export type Release = <T>(work: () => Promise<T>) => Promise<T>;

/** A second Ctrl-C does not wait. After the first signal, work that has cleaned up ends the process as the signal would. */
export async function holdingSignals<T>(io: Io, work: (release: Release) => Promise<T>): Promise<T> {
  let signal: NodeJS.Signals | null = null;
  let isReleased = false;
  const hold = (next: NodeJS.Signals) => {
    if (isReleased) return;
    if (signal === "SIGINT" && next === "SIGINT") endAtOnce(io);
    signal ??= next;
  };
  const release: Release = async (inner) => {
    if (signal !== null) throw new CommandFailure("aborted", `interrupted by ${signal}`);
    isReleased = true;
    try {
      return await inner();
    } finally {
      isReleased = false;
    }
  };
  for (const ending of endings) io.events.on(ending, hold);
  // The usual listeners exit when the terminal has gone.
  for (const stream of [io.stdout, io.stderr]) stream.removeAllListeners("error").on("error", () => {});
  try {
    return await work(release);
  } finally {
    for (const ending of endings) io.events.off(ending, hold);
    if (signal !== null) io.kill(io.pid, signal);
  }
}

function endAtOnce(io: Io): never {
  io.stderr.write("strongroom: interrupted; its token may be left until it expires: strongroom token ls\n");
  io.exit(130);
}
