/** Owns what Ctrl-C means to work that has to tidy up: it ends early by itself. Asked twice, the process ends at once. */

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
