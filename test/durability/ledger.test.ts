/** The crash loop's ledger finds every violation and allows every permitted outcome. */
import { expect } from "chai";
import { Ledger, type Operation } from "./ledger.js";

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

describe("the crash loop's ledger", () => {
  for (const [name, history, allowed, wrong] of rows) {
    it(`judges: ${name}`, () => judge(history, false, allowed, wrong));
  }

  for (const [name, history, allowed, wrong] of initRows) {
    it(`judges after an acknowledged init: ${name}`, () => judge(`${history},init!`, false, allowed, wrong));
    it(`judges after an unacknowledged init that happened: ${name}`, () => judge(history, true, allowed, wrong));
  }

  it("keeps everything after an unacknowledged init that did not happen", () => {
    judge("a=1,init?,b=2", false, [{ a: "1", b: "2" }], [{}, { a: "1" }, { b: "2" }]);
  });

  it("allows a put on either side of a concurrent init, and is certain of the next put", () => {
    judge("a=1?,init?,init!,a!", false, [{}, { a: "1" }], [{ a: "2" }]);
    judge("a=1?,init?,init!,a!,a=2", false, [{ a: "2" }], [{}, { a: "1" }]);
  });

  it("records what was found as certain for the next round", () => {
    const ledger = ledgerOf("a=1?");
    ledger.crash(false);
    ledger.settle(new Map([["a", "1"]]));
    expect(ledger.violations(new Map())).to.have.lengthOf(1);
    expect(ledger.violations(new Map([["a", "1"]]))).to.deep.equal([]);
  });

  it("tells what a response may contain for a path at the moment", () => {
    expect(ledgerOf("").mayHold("a")).to.deep.equal({ something: false, nothing: true });
    expect(ledgerOf("a=1").mayHold("a")).to.deep.equal({ something: true, nothing: false });
    expect(ledgerOf("a=1,init?").mayHold("a")).to.deep.equal({ something: true, nothing: true });
  });

  it("rejects two concurrent operations on one path", () => {
    expect(() => ledgerOf("a=1?,a=2?")).to.throw("two operations");
  });
});

function ledgerOf(history: History): Ledger {
  const ledger = new Ledger();
  const open = new Map<string, Operation>();
  for (const step of history.split(",").filter((text) => text !== "")) take(ledger, open, step);
  return ledger;
}

function take(ledger: Ledger, open: Map<string, Operation>, step: string): void {
  if (step === "init?") ledger.beginInit();
  else if (step === "init!") ledger.acknowledgeInit();
  else takeWrite(ledger, open, step);
}

function takeWrite(ledger: Ledger, open: Map<string, Operation>, step: string): void {
  const [, changes = "", mark] = /^([^?!]+)([?!]?)$/.exec(step) ?? [];
  const parts = changes.split("&").map((change) => change.split("="));
  const [path = ""] = parts.map(([name = ""]) => name);
  const batch = parts.map(([name = "", text = ""]) => ({ path: name, text: text || null }));
  const operation = mark === "!" ? open.get(path) : ledger.beginBatch(batch);
  if (operation === undefined) throw new Error(`no operation is open on ${path}`);
  if (mark === "?") open.set(path, operation);
  else ledger.acknowledge(operation);
}

function judge(history: History, newVault: boolean, allowed: readonly Found[], wrong: readonly Found[]): void {
  const ledger = ledgerOf(history);
  ledger.crash(newVault);
  const judged = (found: Found) => ledger.violations(new Map(Object.entries(found)));
  for (const found of allowed) expect(judged(found), JSON.stringify(found)).to.deep.equal([]);
  for (const found of wrong) expect(judged(found), JSON.stringify(found)).not.to.deep.equal([]);
}
