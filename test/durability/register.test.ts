/** The linearizability checker against written histories, and against brute force on small ones. */
import { expect } from "chai";
import fc from "fast-check";
import { type Act, type Cells, type Event, isLinearizable } from "./register.js";

type Row = readonly [name: string, events: readonly Event[]];

const put = (value: string, call: number, end: number): Event => ({ do: "put", value, call, return: end });
const get = (value: string | null, call: number, end: number): Event => ({ do: "get", value, call, return: end });
const del = (found: boolean, call: number, end: number): Event => ({ do: "delete", found, call, return: end });
const at = (act: Act, call: number, end: number): Event => ({ ...act, call, return: end });
const swap = (from: string | null, value: string, done: boolean): Act => ({ do: "swap", from, value, done });
const both = (...values: Cells): Act => ({ do: "put both", values, done: true });
const seen = (values: Cells | null): Act => ({ do: "get both", values });
const move = (found: boolean): Act => ({ do: "move", found });

const trash = (found: boolean): Act => ({ do: "trash", found });
const untrash = (result: "done" | "missing" | "taken"): Act => ({ do: "untrash", result });
const destroy = (found: boolean): Act => ({ do: "destroy", found });
const look = (found: boolean): Act => ({ do: "look in the trash", found });

const right: readonly Row[] = [
  ["no events", []],
  ["a get of nothing", [get(null, 0, 1)]],
  ["a get after a put", [put("a", 0, 1), get("a", 2, 3)]],
  ["a get beside a put sees the old", [put("a", 0, 9), get(null, 1, 2)]],
  ["a get beside a put sees the new", [put("a", 0, 9), get("a", 1, 2)]],
  ["two gets beside a put, the old first", [put("a", 0, 9), get(null, 1, 2), get("a", 3, 4)]],
  ["two puts beside each other, either last", [put("a", 0, 9), put("b", 0, 9), get("a", 10, 11)]],
  ["of two deletes beside each other one finds it", [put("a", 0, 1), del(true, 2, 9), del(false, 2, 9)]],
  ["a delete, then nothing", [put("a", 0, 1), del(true, 2, 3), get(null, 4, 5), del(false, 6, 7)]],
  ["a put and a delete beside each other: never there", [put("a", 0, 9), del(false, 0, 9), get("a", 10, 11)]],
  [
    "of two swaps from one value one is done",
    [put("a", 0, 1), at(swap("a", "b", true), 2, 9), at(swap("a", "c", false), 2, 9)],
  ],
  ["a creation, then none", [at(swap(null, "a", true), 0, 1), at(swap(null, "b", false), 2, 3), get("a", 4, 5)]],
  [
    "a get of both cells before or after a put to both",
    [at(both("a", "b"), 0, 9), at(seen(null), 1, 2), at(seen(["a", "b"]), 3, 4)],
  ],
  [
    "a put to both cells that is refused",
    [put("a", 0, 1), at({ do: "put both", from: "x", values: ["b", "b"], done: false }, 2, 3), get("a", 4, 5)],
  ],
  [
    "a move",
    [
      put("a", 0, 1),
      at(move(true), 2, 3),
      at({ do: "get", value: "a", cell: 1 }, 4, 5),
      get(null, 6, 7),
      at(move(false), 8, 9),
    ],
  ],
  [
    "the trash and back",
    [
      put("a", 0, 1),
      at(trash(true), 2, 3),
      get(null, 4, 5),
      at(look(true), 4, 5),
      at(untrash("done"), 6, 7),
      get("a", 8, 9),
    ],
  ],
  [
    "a way back that is taken, and free again",
    [
      ...[put("a", 0, 1), at(trash(true), 2, 3), put("b", 4, 5), at(untrash("taken"), 6, 7)],
      ...[del(true, 8, 9), at(untrash("done"), 10, 11), at(untrash("missing"), 12, 13), get("a", 14, 15)],
    ],
  ],
  [
    "the trash beside a destruction, in either order",
    [put("a", 0, 1), at(trash(true), 2, 9), at(destroy(false), 2, 9), at(look(true), 10, 11)],
  ],
  ["ends that meet are beside each other", [put("a", 0, 1), get(null, 1, 2)]],
];

const wrong: readonly Row[] = [
  ["a stale get", [put("a", 0, 1), put("b", 2, 3), get("a", 4, 5)]],
  ["a stale get of nothing", [put("a", 0, 1), get(null, 2, 3)]],
  ["the new, and then the old again", [put("a", 0, 9), get("a", 1, 2), get(null, 3, 4)]],
  [
    "two readers who see two writes in two orders",
    [...[put("a", 0, 9), put("b", 0, 9)], ...[get("a", 10, 11), get("b", 12, 13)]],
  ],
  ["a lost update", [put("a", 0, 1), put("b", 2, 3), del(true, 4, 5), get("b", 6, 7)]],
  ["two swaps from one value", [put("a", 0, 1), at(swap("a", "b", true), 2, 9), at(swap("a", "c", true), 2, 9)]],
  ["a swap that is refused for no reason", [put("a", 0, 1), at(swap("a", "b", false), 2, 3)]],
  ["two creations", [at(swap(null, "a", true), 0, 9), at(swap(null, "b", true), 0, 9)]],
  [
    "a mixture of two puts to both cells",
    [at(both("a", "b"), 0, 9), at(both("c", "d"), 0, 9), at(seen(["a", "d"]), 1, 8)],
  ],
  [
    "a part of a put to both cells",
    [at(both("a", "b"), 0, 9), get("a", 1, 2), at({ do: "get", value: null, cell: 1 }, 3, 4)],
  ],
  ["a secret in both places during a move", [put("a", 0, 1), at(move(true), 2, 9), at(seen(["a", "a"]), 3, 4)]],
  [
    "a secret in no place during a move",
    [put("a", 0, 1), at(move(true), 2, 9), get(null, 3, 4), at({ do: "get", value: null, cell: 1 }, 5, 6)],
  ],
  ["a lost put", [put("a", 0, 1), del(false, 2, 3)]],
  ["a phantom", [get("a", 0, 1), put("a", 2, 3)]],
  ["a value that was never written", [put("a", 0, 1), get("b", 2, 3)]],
  ["a torn value", [put("aa", 0, 9), put("bb", 0, 9), get("ab", 1, 2)]],
  ["a secret that comes back after its delete", [put("a", 0, 1), del(true, 2, 3), get("a", 4, 5)]],
  ["two deletes that both find it", [put("a", 0, 1), del(true, 2, 9), del(true, 2, 9)]],
  ["a delete that finds nothing that was never put", [del(true, 0, 1)]],
  [
    "a secret in both places on its way to the trash",
    [put("a", 0, 1), at(trash(true), 2, 9), at(look(true), 3, 4), get("a", 5, 6)],
  ],
  [
    "a secret in no place on its way to the trash",
    [put("a", 0, 1), at(trash(true), 2, 9), get(null, 3, 4), at(look(false), 5, 6)],
  ],
  [
    "a secret that is destroyed and comes back",
    [put("a", 0, 1), at(trash(true), 2, 3), at(destroy(true), 4, 5), at(untrash("done"), 6, 7)],
  ],
  [
    "two ways back that are both done",
    [put("a", 0, 1), at(trash(true), 2, 3), at(untrash("done"), 4, 9), at(untrash("done"), 4, 9)],
  ],
  [
    "a way back over another secret",
    [put("a", 0, 1), at(trash(true), 2, 3), put("b", 4, 5), at(untrash("done"), 6, 7)],
  ],
];

describe("the linearizability checker", () => {
  for (const [name, events] of right) it(`accepts ${name}`, () => expect(isLinearizable(events)).to.equal(true));
  for (const [name, events] of wrong) it(`rejects ${name}`, () => expect(isLinearizable(events)).to.equal(false));

  it("the checker's verdict does not depend on the order of the events in the list", () => {
    for (const [name, events] of right) expect(isLinearizable(events.toReversed()), name).to.equal(true);
    for (const [name, events] of wrong) expect(isLinearizable(events.toReversed()), name).to.equal(false);
  });

  it("the checker agrees with brute force on small histories", () => {
    let allowed = 0;
    const agrees = (events: readonly Event[]) => {
      const expected = everyOrder(events).some(isValidOrder);
      allowed += Number(expected);
      expect(isLinearizable(events)).to.equal(expected);
    };
    fc.assert(fc.property(history, agrees), { numRuns: 2_000 });
    expect(allowed, "of both kinds there were some").to.be.within(100, 1_900);
  });
});

const value = fc.constantFrom("a", "b", "c");
const maybe = fc.constantFrom("a", "b", null);
const anyEvent: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ do: fc.constant("put" as const), value: fc.constantFrom("a", "b", "c") }),
  fc.record({ do: fc.constant("get" as const), value: maybe, cell: fc.constantFrom(0 as const, 1 as const) }),
  fc.record({ do: fc.constant("swap" as const), from: maybe, value, done: fc.boolean() }),
  fc.record({ do: fc.constant("put both" as const), from: maybe, values: fc.tuple(value, value), done: fc.boolean() }),
  fc.record({ do: fc.constant("get both" as const), values: fc.oneof(fc.tuple(value, value), fc.constant(null)) }),
  fc.record({ do: fc.constant("move" as const), found: fc.boolean() }),
  fc.record({ do: fc.constant("delete" as const), found: fc.boolean() }),
  fc.record({ do: fc.constantFrom("trash" as const, "destroy" as const), found: fc.boolean() }),
  fc.record({ do: fc.constant("look in the trash" as const), found: fc.boolean() }),
  fc.record({ do: fc.constant("untrash" as const), result: fc.constantFrom("done", "missing", "taken") }),
);
const span = fc.record({ call: fc.nat(12), length: fc.nat(8) });
const history: fc.Arbitrary<Event[]> = fc.array(
  fc.tuple(anyEvent, span).map(([event, { call, length }]) => ({ ...event, call, return: call + length })),
  { maxLength: 5 },
);

function everyOrder(events: readonly Event[]): Event[][] {
  if (events.length === 0) return [[]];
  return events.flatMap((first, n) => everyOrder(events.toSpliced(n, 1)).map((rest) => [first, ...rest]));
}

/** Brute force: time does not run backwards, and every result fits the state before it. */
function isValidOrder(events: readonly Event[]): boolean {
  const state: (string | null)[] = [null, null, null];
  return events.every(
    (event, n) => !events.slice(n).some((later) => later.return < event.call) && happens(event, state),
  );
}

/** Changes the state; returns whether the result fits. */
function happens(event: Act, state: (string | null)[]): boolean {
  const [first = null, second = null, trashed = null] = state;
  if (event.do === "look in the trash") return event.found === (trashed !== null);
  if (event.do === "trash" || event.do === "untrash" || event.do === "destroy") return happensToTrash(event, state);
  if (event.do === "get") return event.value === state[event.cell ?? 0];
  if (event.do === "get both")
    return event.values === null ? first === null || second === null : event.values.join() === state.slice(0, 2).join();
  const [fits, next] = applyChange(event, first, second);
  state.splice(0, 2, ...next);
  return fits;
}

type TrashAct = Extract<Act, { do: "trash" | "untrash" | "destroy" }>;

function happensToTrash(event: TrashAct, state: (string | null)[]): boolean {
  const from = event.do === "trash" ? 0 : 2;
  const value = state[from] ?? null;
  if (event.do === "untrash" && value !== null && state[0] !== null) return event.result === "taken";
  if (value !== null && event.do !== "destroy") state[2 - from] = value;
  if (value !== null) state[from] = null;
  if (event.do === "untrash") return event.result === (value === null ? "missing" : "done");
  return event.found === (value !== null);
}

function applyChange(
  event: Exclude<Act, { do: "get" | "get both" | TrashAct["do"] | "look in the trash" }>,
  first: string | null,
  second: string | null,
): readonly [boolean, Cells] {
  if (event.do === "put") return [true, [event.value, second]];
  if (event.do === "delete") return [event.found === (first !== null), [null, second]];
  if (event.do === "move") return [event.found === (first !== null), event.found ? [null, first] : [first, second]];
  const fits = event.done === (event.from === undefined || event.from === first);
  if (!event.done) return [fits, [first, second]];
  return [fits, event.do === "swap" ? [event.value, second] : event.values];
}
