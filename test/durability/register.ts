/**
 * Linearizability check of a register of two cells, the first of which has a trash: whether one order of operations, each at one moment between its call and
 * its return, explains what the clients saw. Wing and Gong's search with Lowe's memoisation. Values must be unique, so that a
 * value stands for its tag.
 */

export type Timed = { readonly call: number; readonly return: number };

/** An operation, on the first cell where `cell` is missing. `done`: the condition held. */
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
  | { readonly do: "move"; readonly found: boolean }
  /** From the first cell to the trash, in place of what is there. */
  | { readonly do: "trash"; readonly found: boolean }
  /** From the trash to the first cell. `taken`: that was not empty, and nothing changed. */
  | { readonly do: "untrash"; readonly result: "done" | "missing" | "taken" }
  /** Removes the secret in the trash for good. */
  | { readonly do: "destroy"; readonly found: boolean }
  | { readonly do: "look in the trash"; readonly found: boolean };
export type Event = Timed & Act;

export type Cells = readonly [string | null, string | null];
export type State = readonly [...Cells, trash: string | null];

const mostEvents = 30; // the set of ordered events is a bit mask

/** The register begins empty. */
export function isLinearizable(events: readonly Event[]): boolean {
  if (events.length > mostEvents) throw new Error(`a history may have at most ${mostEvents} events`);
  return explains(events, 0, [null, null, null], new Set());
}

/** Whether the events outside `done` can follow when the register contains `state`. */
function explains(events: readonly Event[], done: number, state: State, failed: Set<string>): boolean {
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
function after(event: Act, state: State): State | null {
  const [first, second, trash] = state;
  switch (event.do) {
    case "put":
      return [event.value, second, trash];
    case "get":
      return event.value === state[event.cell ?? 0] ? state : null;
    case "delete":
      return event.found === (first !== null) ? [null, second, trash] : null;
    case "swap":
      return changed(event.done, event.from === first, state, [event.value, second, trash]);
    case "put both":
      return changed(event.done, event.from === undefined || event.from === first, state, [...event.values, trash]);
    case "get both":
      return isSeen(event.values, state) ? state : null;
    case "move":
      return changed(event.found, first !== null, state, [null, first, trash]);
    default:
      return afterInTrash(event, state);
  }
}

type TrashAct = Extract<Act, { do: "trash" | "untrash" | "destroy" | "look in the trash" }>;

function afterInTrash(event: TrashAct, state: State): State | null {
  const [first, second, trash] = state;
  switch (event.do) {
    case "trash":
      return changed(event.found, first !== null, state, [null, second, first]);
    case "untrash":
      if (event.result !== untrashOutcome(state)) return null;
      return event.result === "done" ? [trash, second, null] : state;
    case "destroy":
      return changed(event.found, trash !== null, state, [first, second, null]);
    case "look in the trash":
      return event.found === (trash !== null) ? state : null;
  }
}

function untrashOutcome([first, , trash]: State): "done" | "missing" | "taken" {
  if (trash === null) return "missing";
  return first === null ? "done" : "taken";
}

function changed(done: boolean, holds: boolean, state: State, next: State): State | null {
  if (done !== holds) return null;
  return done ? next : state;
}

function isSeen(values: Cells | null, [first, second]: State): boolean {
  if (values === null) return first === null || second === null;
  return values[0] === first && values[1] === second;
}
