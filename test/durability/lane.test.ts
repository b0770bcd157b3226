/** The model of a vault that changes finds every violation and allows every permitted outcome. */
import { expect } from "chai";
import { type Change, canonical, Lane, type Part } from "./lane.js";

/**
 * Steps, separated by commas: `a=1` an acknowledged put, `a=` an acknowledged delete; with a `?`, not acknowledged (yet);
 * `a!` the acknowledgement; `a=1&b=2` a batch; `init?` a forced init begins, `init!` it is acknowledged.
 */
type History = string;
type Found = Readonly<Record<string, string>>;
type Row = readonly [name: string, history: History, allowed: readonly Found[], wrong: readonly Found[]];

const rows: readonly Row[] = [
  ["a vault that was never written to is empty", "", [{}], [{ a: "1" }]],
  ["an acknowledged put is there, whole", "a=1", [{ a: "1" }], [{}, { a: "2" }, { a: "" }]],
  ["an acknowledged put replaces what was there", "a=old,a=new", [{ a: "new" }], [{ a: "old" }, { a: "nld" }, {}]],
  ["an acknowledged delete is one", "a=1,a=", [{}], [{ a: "1" }]],
  [
    "an unanswered put has happened whole or not at all",
    "a=old,a=new?",
    [{ a: "old" }, { a: "new" }],
    [{}, { a: "newold" }, { a: "ne" }],
  ],
  ["an unanswered put of a new path too", "a=1?", [{}, { a: "1" }], [{ a: "2" }, { b: "1" }]],
  ["an unanswered delete too", "a=1,a=?", [{}, { a: "1" }], [{ a: "2" }, { a: "1", b: "2" }]],
  [
    "no path holds what is another's",
    "a=1,b=2",
    [{ a: "1", b: "2" }],
    [
      { a: "2", b: "1" },
      { a: "1", b: "2", c: "1" },
    ],
  ],
  ["an acknowledged batch is there, whole", "a=1,a=&b=2", [{ b: "2" }], [{}, { a: "1" }, { a: "1", b: "2" }]],
  [
    "an unanswered batch has happened whole or not at all",
    "a=1,b=1,a=2&b=&c=2?",
    [
      { a: "1", b: "1" },
      { a: "2", c: "2" },
    ],
    [{ a: "2", b: "1" }, { a: "1", c: "2" }, { a: "2", b: "1", c: "2" }, { a: "2" }],
  ],
];

const initRows: readonly Row[] = [
  ["what was there before is gone", "a=1,init?", [{}], [{ a: "1" }]],
  ["a put answered beside it came before or after", "a=old,init?,a=new", [{}, { a: "new" }], [{ a: "old" }]],
  ["so did one that began before it", "a=old,a=new?,init?,a!", [{}, { a: "new" }], [{ a: "old" }]],
  [
    "an unanswered batch has happened after it, whole, or not at all",
    "init?,a=1&b=1?",
    [{}, { a: "1", b: "1" }],
    [{ a: "1" }],
  ],
  ["an unanswered put may have happened after it", "a=old,a=new?,init?", [{}, { a: "new" }], [{ a: "old" }]],
];

describe("the model of a vault that changes", () => {
  for (const [name, history, allowed, wrong] of rows) {
    it(`the model judges ${name}`, () => judge(history, false, allowed, wrong));
  }

  for (const [name, history, allowed, wrong] of initRows) {
    it(`the model judges after an acknowledged init: ${name}`, () => judge(`${history},init!`, false, allowed, wrong));
    it(`the model judges after an unacknowledged init that happened: ${name}`, () =>
      judge(history, true, allowed, wrong));
  }

  it("the model keeps everything after an unacknowledged init that did not happen", () => {
    judge("a=1,init?,b=2", false, [{ a: "1", b: "2" }], [{}, { a: "1" }, { b: "2" }]);
  });

  it("the model allows a put on either side of a concurrent init, and is certain of the next put", () => {
    judge("a=1?,init?,init!,a!", false, [{}, { a: "1" }], [{ a: "2" }]);
    judge("a=1?,init?,init!,a!,a=2", false, [{ a: "2" }], [{}, { a: "1" }]);
  });

  it("the model takes what was found as certain for the next round", () => {
    const lane = laneAfter("a=1?");
    lane.crash(false);
    lane.settle({ a: "1" });
    expect(() => lane.settle({})).to.throw("allowed is");
    lane.settle({ a: "1" });
  });

  const answers: readonly (readonly [history: string, wrong: string])[] = [
    ["", "a="],
    ["a=1,a=", "a="],
    ["a=1?,a!", "b="],
  ];
  for (const [history, wrong] of answers) {
    it(`the model refuses the acknowledgement of ${wrong} after "${history}", where no secret is`, () => {
      expect(() => laneAfter(`${history},${wrong}`)).to.throw("was answered with 200");
    });
  }

  it("the model allows a delete on either side of a concurrent init", () => {
    for (const status of [200, 404]) {
      const lane = laneAfter("a=1,init?");
      lane.begin(batch([["a", ""]]));
      lane.answer({ status, json: {} });
    }
  });

  it("the model allows a delete that was begun before two inits, and a put on either side of them", () => {
    judge("a=1,a=?,init?,init!,init?,init!,a!", false, [{}], [{ a: "1" }]);
    judge("a=1,a=2?,init?,init!,init?,init!,a!", false, [{}, { a: "2" }], [{ a: "1" }]);
    judge("a=1,a=2?,init?,init!,init?,a!", false, [{}, { a: "2" }], [{ a: "1" }]);
    judge("a=1,a=2?,init?,init!,init?,a!,b=3", true, [{}, { b: "3" }, { a: "2", b: "3" }], [{ a: "1" }, { a: "2" }]);
  });

  it("the model refuses two changes at the same time", () => {
    expect(() => laneAfter("a=1?,b=2?")).to.throw("two changes");
  });
});

const part: Part<Found, Found> = {
  name: "test",
  empty: {},
  choose: () => null,
  matches: (state, found) => canonical(state) === canonical(found),
  describe: (found) => found,
};

/** Changes of paths; an empty text: a delete, which needs a secret. */
function batch(changes: readonly (readonly [path: string, text: string])[]): Change<Found> {
  const request = { method: "POST", path: "/v1/batch" } as const;
  return {
    request,
    outcomes: (state) => {
      const after = new Map(Object.entries(state));
      for (const [path, text] of changes) {
        if (text !== "") after.set(path, text);
        else if (!after.delete(path)) return [{ status: 404, state }];
      }
      return [{ status: 200, state: Object.fromEntries(after) }];
    },
  };
}

function laneAfter(history: History): Lane<Found, Found> {
  const lane = new Lane(part);
  for (const step of history.split(",").filter((text) => text !== "")) take(lane, step);
  return lane;
}

function take(lane: Lane<Found, Found>, step: string): void {
  if (step === "init?") lane.beginInit();
  else if (step === "init!") lane.endInit(true);
  else takeChange(lane, step);
}

function takeChange(lane: Lane<Found, Found>, step: string): void {
  const [, changes = "", mark] = /^([^?!]+)([?!]?)$/.exec(step) ?? [];
  if (mark !== "!") lane.begin(batch(changes.split("&").map((change) => split(change))));
  if (mark !== "?") lane.answer({ status: 200, json: {} });
}

function split(change: string): readonly [string, string] {
  const [path = "", text = ""] = change.split("=");
  return [path, text];
}

function judge(history: History, isNew: boolean, allowed: readonly Found[], wrong: readonly Found[]): void {
  for (const found of allowed) settled(history, isNew, found);
  for (const found of wrong) expect(() => settled(history, isNew, found), JSON.stringify(found)).to.throw("allowed is");
}

function settled(history: History, isNew: boolean, found: Found): void {
  const lane = laneAfter(history);
  lane.crash(isNew);
  lane.settle(found);
}
