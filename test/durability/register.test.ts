/** The linearizability checker against written histories, and against brute force on small ones. */
import { expect } from "chai";
import fc from "fast-check";
import { type Event, isLinearizable } from "./register.js";

type Row = readonly [name: string, events: readonly Event[]];

const put = (value: string, call: number, end: number): Event => ({ do: "put", value, call, return: end });
const get = (value: string | null, call: number, end: number): Event => ({ do: "get", value, call, return: end });
const del = (found: boolean, call: number, end: number): Event => ({ do: "delete", found, call, return: end });

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
  ["a lost put", [put("a", 0, 1), del(false, 2, 3)]],
  ["a phantom", [get("a", 0, 1), put("a", 2, 3)]],
  ["a value that was never written", [put("a", 0, 1), get("b", 2, 3)]],
  ["a torn value", [put("aa", 0, 9), put("bb", 0, 9), get("ab", 1, 2)]],
  ["a secret that comes back after its delete", [put("a", 0, 1), del(true, 2, 3), get("a", 4, 5)]],
  ["two deletes that both find it", [put("a", 0, 1), del(true, 2, 9), del(true, 2, 9)]],
  ["a delete that finds nothing that was never put", [del(true, 0, 1)]],
];

describe("the linearizability checker", () => {
  for (const [name, events] of right) it(`accepts ${name}`, () => expect(isLinearizable(events)).to.equal(true));
  for (const [name, events] of wrong) it(`rejects ${name}`, () => expect(isLinearizable(events)).to.equal(false));

  it("does not depend on the order of the events in the list", () => {
    for (const [name, events] of right) expect(isLinearizable(events.toReversed()), name).to.equal(true);
    for (const [name, events] of wrong) expect(isLinearizable(events.toReversed()), name).to.equal(false);
  });

  it("agrees with brute force on small histories", () => {
    let allowed = 0;
    const agrees = (events: readonly Event[]) => {
      const expected = everyOrder(events).some(isOrderOf);
      allowed += Number(expected);
      expect(isLinearizable(events)).to.equal(expected);
    };
    fc.assert(fc.property(history, agrees), { numRuns: 2_000 });
    expect(allowed, "of both kinds there were some").to.be.within(100, 1_900);
  });
});

const anyEvent = fc.oneof(
  fc.record({ do: fc.constant("put" as const), value: fc.constantFrom("a", "b", "c") }),
  fc.record({ do: fc.constant("get" as const), value: fc.constantFrom("a", "b", null) }),
  fc.record({ do: fc.constant("delete" as const), found: fc.boolean() }),
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
function isOrderOf(events: readonly Event[]): boolean {
  let state: string | null = null;
  return events.every((event, n) => {
    if (events.slice(n).some((later) => later.return < event.call)) return false;
    const fits = event.do === "put" || (event.do === "get" ? event.value === state : event.found === (state !== null));
    if (event.do !== "get") state = event.do === "put" ? event.value : null;
    return fits;
  });
}
