/** Ctrl-C for work that must clean up: the first aborts a signal, the second ends the process at once. */

const endings = ["SIGINT", "SIGTERM"] as const;

export async function breakable<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const abort = () => controller.abort();
  for (const ending of endings) process.once(ending, abort);
  try {
    return await work(controller.signal);
  } finally {
    for (const ending of endings) process.off(ending, abort);
  }
}
