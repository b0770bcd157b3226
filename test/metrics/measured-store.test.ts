/** The measured store: every member reaches the store behind it, a shared one's too, and each call is reported. */
import { expect } from "chai";
import { VaultError } from "../../src/errors.js";
import { createLog } from "../../src/log.js";
import { measuredStore } from "../../src/metrics/measured-store.js";
import { Observers } from "../../src/observer.js";
import type { SecretStore, SharedStore } from "../../src/storage/secret-store.js";
import { MemoryStore, nothingKept } from "../support/memory-store.js";

/** How many arguments each takes. */
const members = {
  ...{ header: 0, count: 0, list: 3, read: 2, commit: 1, flush: 1, startNewVault: 1, replaceHeader: 2 },
  ...{ readDocument: 1, writeDocument: 3, snapshot: 0, freeze: 1, close: 0 },
};
const sharedMembers = {
  ...{ onReplaced: 1, confirm: 0, serverConnections: 0, currentRun: 0, foreignRows: 0, alone: 1, commitOn: 2 },
  ...{ documentTags: 1, listWithHeads: 4 },
};

/** Members without a call of their own, or whose call has another name. */
const unreported = new Set(["close", "onReplaced", "serverConnections", "currentRun", "foreignRows", "alone"]);
const reportedAs = new Map([
  ["flush", "commit"],
  ["commitOn", "commit"],
  ["listWithHeads", "list"],
]);

type Called = readonly [name: string, args: readonly unknown[]];

/** Every function of it notes its call and returns its own name. */
function noting(names: object, called: Called[]): object {
  const one =
    (name: string) =>
    async (...args: unknown[]) => {
      called.push([name, args]);
      return name;
    };
  return Object.fromEntries(Object.keys(names).map((name) => [name, one(name)]));
}

function measured(store: SecretStore) {
  const told: string[] = [];
  const observers = new Observers(createLog("error", () => {}, Date.now));
  observers.add({ storageReturned: (call, _ms, failed) => told.push(`${call} ${failed ? "failed" : "ok"}`) });
  return { store: measuredStore(store, observers), told };
}

describe("the measured store", () => {
  const called: Called[] = [];
  const shared = { generation: "g", foreignOwner: null, ...noting(sharedMembers, called) } as SharedStore;
  const inner = { vaultPath: "/vault", ...noting(members, called), shared } as SecretStore;
  const { store, told } = measured(inner);

  for (const [whole, names] of [
    [store, members],
    [store.shared, sharedMembers],
  ] as const)
    for (const [name, count] of Object.entries(names))
      it(`the store passes ${name} on with its arguments, and returns the result`, async () => {
        called.length = 0;
        const work = Reflect.get(whole ?? {}, name) as (...args: readonly unknown[]) => Promise<unknown>;
        const before = told.length;
        expect(await work("first", "second", 3, 4)).to.equal(name);
        expect(told.slice(before)).to.deep.equal(unreported.has(name) ? [] : [`${reportedAs.get(name) ?? name} ok`]);
        const [[reached, args] = ["", []]] = called;
        expect(reached).to.equal(name);
        expect(args.slice(0, count)).to.deep.equal(["first", "second", 3, 4].slice(0, count));
      });

  it("the measured store has the members of the store and no others, and shows the current generation", () => {
    expect(Object.keys(store).sort()).to.deep.equal(["vaultPath", "shared", ...Object.keys(members)].sort());
    expect(Object.keys(store.shared ?? {}).sort()).to.deep.equal(
      ["foreignOwner", "generation", ...Object.keys(sharedMembers)].sort(),
    );
    expect([store.vaultPath, store.shared?.generation]).to.deep.equal(["/vault", "g"]);
    Object.assign(shared, { generation: "h" });
    expect(store.shared?.generation).to.equal("h");
  });

  it("the measured store has no shared part when the store has none", () => {
    expect(measured(new MemoryStore(nothingKept())).store).not.to.have.property("shared");
  });

  for (const [code, expected] of [
    ["UNAVAILABLE", "count failed"],
    ["VAULT_LOCKED", "count ok"],
  ] as const)
    it(`a call that throws ${code} is reported as ${expected}, and rethrown`, async () => {
      const failing = measured({ ...inner, count: () => Promise.reject(new VaultError(code, "no")) });
      const error = await failing.store.count().catch((thrown: unknown) => thrown);
      expect(error).to.include({ code });
      expect(failing.told).to.deep.equal([expected]);
    });
});
