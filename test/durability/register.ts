/**
 * Linearizability check of a register of two cells: whether one order of operations, each at one moment between its call and
 * its return, explains what the clients saw. Wing and Gong's search with Lowe's memoisation. Values must be unique, so that a
 * value stands for its tag.
 */

export type Timed = { readonly call: number; readonly return: number };

/** Of the first cell where `cell` is missing. `done`: the condition held. */
export type Act =
  | { readonly do: "put"; readonly value: string }
  | { readonly do: "get"; readonly value: string | null; readonly cell?: 0 | 1 }
  | { readonly do: "delete"; readonly found: boolean }
  /** A put if the cell contains `from`. */
  | { readonly do: "swap"; readonly from: string | null; readonly value: string; readonly done: boolean }
  /** A put to both cells if the first contains `from`; undefined: without a condition. */
  | { readonly do: "put both"; readonly from?: string | null; readonly values: Cells; readonly done: boolean }
  /** A get of both cells at one moment; null when one of them is empty. */
  | { readonly do: "get both"; readonly values: Cells | null }
  /** From the first cell to the second. */
  | { readonly do: "move"; readonly found: boolean };
export type Event = Timed & Act;

export type Cells = readonly [string | null, string | null];

const mostEvents = 30; // the set of ordered events is a bit mask

/** The register begins empty. */
export function isLinearizable(events: readonly Event[]): boolean {
  if (events.length > mostEvents) throw new Error(`a history may have at most ${mostEvents} events`);
  return explains(events, 0, [null, null], new Set());
}

/** Whether the events outside `done` can follow when the register contains `state`. */
function explains(events: readonly Event[], done: number, state: Cells, failed: Set<string>): boolean {
  if (done === 2 ** events.length - 1) return true;
  const known = `${done} ${JSON.stringify(state)}`;
  if (failed.has(known)) return false;
  const firstReturn = Math.min(
    ...events.map((event, n) => (isDone(done, n) ? Number.POSITIVE_INFINITY : event.return)),
  );
  const explained = events.some((event, n) => {
    if (isDone(done, n) || event.call > firstReturn) return false; // another event returned before this call
    const next = after(event, state);
    return next !== null && explains(events, done | (1 << n), next, failed);
  });
  if (!explained) failed.add(known);
  return explained;
}

function isDone(done: number, n: number): boolean {
  return (done & (1 << n)) !== 0;
}

/** Returns null when the event cannot happen in this state. */
function after(event: Act, state: Cells): Cells | null {
  const [first, second] = state;
  switch (event.do) {
    case "put":
      return [event.value, second];
    case "get":
      return event.value === state[event.cell ?? 0] ? state : null;
    case "delete":
      return event.found === (first !== null) ? [null, second] : null;
    case "swap":
      return changed(event.done, event.from === first, state, [event.value, second]);
    case "put both":
      return changed(event.done, event.from === undefined || event.from === first, state, event.values);
    case "get both":
      return isSeen(event.values, state) ? state : null;
    case "move":
      return changed(event.found, first !== null, state, [null, first]);
  }
}

function changed(done: boolean, holds: boolean, state: Cells, next: Cells): Cells | null {
  if (done !== holds) return null;
  return done ? next : state;
}

function isSeen(values: Cells | null, state: Cells): boolean {
  return values === null ? state.includes(null) : values.every((value, cell) => value === state[cell]);
}
