/**
 * File operations that report an error before their effect or after it, as NFS and FUSE do when a reply is lost: a refused
 * change has happened or has not, what is acknowledged stays, and the next start finds what the server showed.
 */
import { expect } from "chai";
import { type FileOperations, systemFiles } from "../../src/files/durable.js";
import { FileStore } from "../../src/storage/files/file-store.js";
import { type Change, type SecretStore, spaces } from "../../src/storage/secret-store.js";
import { bytes } from "../support/bytes.js";
import { temporaryDirectory } from "../support/clean-up.js";

const steps = ["rename", "unlink", "mkdir", "rmdir", "link"] as const;

/** Operations on names, of which the k-th from `fail` on reports an error, once it has taken effect or instead of that. */
function unreliableFiles() {
  let left = 0;
  let isAfter = false;
  const due = () => left > 0 && --left === 0;
  const failing =
    (step: (typeof steps)[number]) =>
    async (...args: unknown[]) => {
      const isDue = due();
      const perform = systemFiles[step] as (...args: unknown[]) => Promise<unknown>;
      if (!isDue) return perform(...args);
      if (isAfter) await perform(...args);
      throw Object.assign(new Error("EIO"), { code: "EIO" });
    };
  const files = { ...systemFiles, ...Object.fromEntries(steps.map((step) => [step, failing(step)])) } as FileOperations;
  return {
    files,
    fail: (k: number, after: boolean) => {
      [left, isAfter] = [k, after];
    },
    /** Returns whether the fault has occurred. */
    repair: () => {
      const occurred = left === 0;
      left = 0;
      return occurred;
    },
  };
}

type State = Readonly<Record<string, string>>;

async function stateOf(store: SecretStore): Promise<State> {
  const state: Record<string, string> = { header: Buffer.from((await store.header()) ?? []).toString() };
  const document = await store.readDocument("tokens");
  if (document !== null) state["document"] = Buffer.from(document.bytes).toString();
  for (const space of spaces) {
    for (const path of await store.list("", "", 99, space)) {
      const blob = await store.read(path, undefined, space);
      if (blob !== null) state[`${space} ${path}`] = Buffer.from(blob).toString();
    }
  }
  return state;
}

type Kind = { readonly name: string; readonly run: (store: SecretStore) => Promise<unknown>; readonly after: State };

const before: State = { header: "old", document: "d1", "secrets a": "1", "secrets b/c": "1" };

async function fill(store: SecretStore): Promise<void> {
  await store.startNewVault(bytes("old"));
  for (const path of ["a", "b/c"]) await store.commit([{ path, blob: bytes("1") }]);
  await store.writeDocument("tokens", bytes("d1"), null);
}

const batch: readonly Change[] = [
  { path: "a", blob: bytes("2") },
  { path: "b/c", blob: null },
  { space: "trash", path: "b/c", blob: bytes("1") },
];

const kinds: readonly Kind[] = [
  {
    name: "put",
    run: (store) => store.commit([{ path: "a", blob: bytes("2") }]),
    after: { ...before, "secrets a": "2" },
  },
  {
    name: "put of a new path",
    run: (store) => store.commit([{ path: "d/e/f", blob: bytes("2") }]),
    after: { ...before, "secrets d/e/f": "2" },
  },
  {
    name: "delete",
    run: (store) => store.commit([{ path: "b/c", blob: null }]),
    after: { header: "old", document: "d1", "secrets a": "1" },
  },
  {
    name: "batch",
    run: (store) => store.commit(batch),
    after: { header: "old", document: "d1", "secrets a": "2", "trash b/c": "1" },
  },
  {
    name: "new header",
    run: (store) => store.replaceHeader(bytes("new"), bytes("old")),
    after: { ...before, header: "new" },
  },
  {
    name: "new document",
    run: async (store) => {
      const found = await store.readDocument("tokens");
      await store.writeDocument("tokens", bytes("d2"), found?.tag ?? null);
    },
    after: { ...before, document: "d2" },
  },
  { name: "forced init", run: (store) => store.startNewVault(bytes("new")), after: { header: "new" } },
];

type Open = (directory: string, files: FileOperations) => Promise<SecretStore>;
const openStore: Open = (directory, files) => FileStore.open(directory, files);

/** Makes one change with a fault, then one that must be acknowledged and stay. Returns what is wrong; null at its end. */
async function violationOf(kind: Kind, k: number, isAfter: boolean, open: Open): Promise<string | null | "no fault"> {
  const directory = temporaryDirectory();
  const { files, fail, repair } = unreliableFiles();
  const store = await open(directory, files);
  await fill(store);
  fail(k, isAfter);
  const refused = await kind.run(store).then(
    () => false,
    () => true,
  );
  const occurred = repair();
  const seen = await stateOf(store);
  const later = await store.commit([{ path: "a", blob: bytes("later") }]).then(
    () => true,
    () => false,
  );
  await store.close();
  const again = await FileStore.open(directory).catch((error: Error) => error.message);
  if (typeof again === "string") return `no start: ${again}`;
  const found = await stateOf(again);
  await again.close();
  if (!occurred) return "no fault";
  const same = (one: State, other: State) => JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
  const allowed = refused ? [before, kind.after] : [kind.after];
  if (!allowed.some((state) => same(state, seen))) return `shows ${JSON.stringify(seen)}, refused: ${refused}`;
  const wanted = later ? { ...seen, "secrets a": "later" } : seen;
  return same(wanted, found) ? null : `found ${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`;
}

function sorted(state: State): readonly (readonly [string, string])[] {
  return Object.entries(state).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Lets each operation of the change fail in its turn; returns what came of each. */
async function outcomesOf(kind: Kind, isAfter: boolean, open: Open): Promise<(string | null)[]> {
  const outcomes: (string | null)[] = [];
  for (let k = 1; ; k++) {
    const violation = await violationOf(kind, k, isAfter, open);
    if (violation === "no fault") return outcomes;
    outcomes.push(violation && `${k} ${isAfter ? "after" : "before"}: ${violation}`);
  }
}

/** Returns the violations, and how many faults there were. */
async function play(kind: Kind, open: Open, rounds: number): Promise<{ found: string[]; faults: number }> {
  const all: (string | null)[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const isAfter of [false, true]) all.push(...(await outcomesOf(kind, isAfter, open)));
  }
  return { found: all.filter((outcome) => outcome !== null), faults: all.length };
}

describe("an operation on a name that reports an error before or after its effect", () => {
  const rounds = Number(process.env["STRONGROOM_LOST_REPLIES"] ?? 1);

  for (const kind of kinds) {
    it(`leaves the old state or the new one, as shown, and what is acknowledged later stays: ${kind.name}`, async () => {
      const { found, faults } = await play(kind, openStore, rounds);
      expect(found).to.deep.equal([]);
      expect(faults).to.be.at.least(2);
    }).timeout(600_000);
  }

  it("is found out where a store takes every error for a success", async () => {
    const careless: Open = async (directory, files) => {
      const store = await openStore(directory, files);
      const commit = store.commit.bind(store);
      return Object.assign(store, {
        commit: (changes: readonly Change[]) => commit(changes).catch(() => ({ committed: true })),
      });
    };
    const batchKind = kinds.find(({ name }) => name === "put");
    if (batchKind === undefined) throw new Error("no such kind");
    expect((await play(batchKind, careless, 1)).found).to.not.deep.equal([]);
  });
});
