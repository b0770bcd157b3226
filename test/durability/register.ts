/**
 * Linearizability check of a register: whether one order of operations, each at one moment between its call and its
 * return, explains what the clients saw. Wing and Gong's search with Lowe's memoisation. Values must be unique.
 */

export type Timed = { readonly call: number; readonly return: number };
export type Event = Timed &
  (
    | { readonly do: "put"; readonly value: string }
    | { readonly do: "get"; readonly value: string | null }
    | { readonly do: "delete"; readonly found: boolean }
  );

const mostEvents = 30; // the set of ordered events is a bit mask

/** The register begins empty. */
export function isLinearizable(events: readonly Event[]): boolean {
  if (events.length > mostEvents) throw new Error(`a history may have at most ${mostEvents} events`);
  return explains(events, 0, null, new Set());
}

/** Whether the events outside `done` can follow when the register contains `state`. */
function explains(events: readonly Event[], done: number, state: string | null, failed: Set<string>): boolean {
  if (done === 2 ** events.length - 1) return true;
  const known = `${done} ${state}`;
  if (failed.has(known)) return false;
  const firstReturn = Math.min(
    ...events.map((event, n) => (isDone(done, n) ? Number.POSITIVE_INFINITY : event.return)),
  );
  const explained = events.some((event, n) => {
    if (isDone(done, n) || event.call > firstReturn) return false; // another event returned before this call
    const next = after(event, state);
    return next !== "impossible" && explains(events, done | (1 << n), next.state, failed);
  });
  if (!explained) failed.add(known);
  return explained;
}

function isDone(done: number, n: number): boolean {
  return (done & (1 << n)) !== 0;
}

function after(event: Event, state: string | null): { readonly state: string | null } | "impossible" {
  switch (event.do) {
    case "put":
      return { state: event.value };
    case "get":
      return event.value === state ? { state } : "impossible";
    case "delete":
      return event.found === (state !== null) ? { state: null } : "impossible";
  }
}
