/** Work that runs one at a time: in the order of the calls, or once for all callers that wait. */

type InTurn = <T>(work: () => Promise<T>) => Promise<T>;

export function oneAtATime(): InTurn {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const current = last.then(work, work);
    last = current;
    return current;
  };
}

/** Returns a function that runs the work for each call, or once for all calls that wait for the previous run to end. */
export function sharedRuns(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<unknown> = Promise.resolve();
  let next: Promise<void> | null = null;
  const begin = () => {
    next = null;
    const run = work();
    running = run.catch(() => {}); // its callers get the error
    return run;
  };
  return () => {
    next ??= running.then(begin);
    return next;
  };
}
