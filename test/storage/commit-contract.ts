/** Store contract, part two: commits with expected tags, batches, the header, and documents. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect } from "chai";
import { blobTag } from "../../src/storage/blob-tag.js";
import type { Change, SecretStore } from "../../src/storage/secret-store.js";
import type { Bytes } from "../../workers/protocol.js";
import { bytes } from "../support/bytes.js";
import { faults } from "../support/failing-files.js";
import { write } from "../support/store-changes.js";
import {
  begin,
  type Check,
  everyStep,
  header,
  mustRead,
  type Rule,
  refusal,
  text,
  type WithFault,
} from "./contract-engine.js";

export const commitRules: readonly Rule[] = [
  {
    name: "a change is made only in the expected state: present, absent, or with a tag",
    async check(engine) {
      const store = await begin(engine);
      const [first, second] = [tagged("first"), tagged("second")];
      const attempts: readonly (readonly [Bytes | null, Change["expected"] & {}, boolean])[] = [
        [first, "present", false],
        [first, { tag: blobTag(first) }, false],
        [null, "present", false],
        [first, "absent", true],
        [second, "absent", false],
        [second, { tag: blobTag(second) }, false],
        [second, { tag: "" }, false],
        [second, { tag: blobTag(first) }, true],
        [first, { tag: blobTag(first) }, false],
        [null, { tag: blobTag(first) }, false],
        [first, "present", true],
        [null, { tag: blobTag(first) }, true],
        [null, { tag: blobTag(first) }, false],
      ];
      for (const [at, [blob, expected, committed]] of attempts.entries()) {
        const result = await store.commit([{ path: "a/b", blob, expected }]);
        expect(result, `attempt ${at}`).to.deep.equal(committed ? { committed } : { committed, refused: 0 });
      }
      expect([await store.count(), await store.read("a/b")]).to.deep.equal([0, null]);
    },
  },
  {
    name: "an unconditional removal of nothing is committed, and so is a commit of nothing",
    async check(engine) {
      const store = await begin(engine);
      for (const changes of [[], [{ path: "a", blob: null }]]) {
        expect(await store.commit(changes)).to.deep.equal({ committed: true });
      }
    },
  },
  {
    name: "many changes are made at once, also after reopening",
    async check(engine) {
      const store = await begin(engine);
      await seed(store);
      expect(await store.commit(batch())).to.deep.equal({ committed: true });
      for (const each of [store, await engine.open()]) expect(await readState(each)).to.deep.equal(after);
    },
  },
  {
    name: "of many changes none is made when one expectation does not hold, whichever it is",
    async check(engine) {
      const store = await begin(engine);
      await seed(store);
      for (const [refused, change] of batch().entries()) {
        const expected = { tag: "never" };
        const changes = batch().map((each) => (each.path === change.path ? { ...each, expected } : each));
        expect(await store.commit(changes)).to.deep.equal({ committed: false, refused });
        for (const each of [store, await engine.open()]) expect(await readState(each)).to.deep.equal(before);
      }
    },
  },
  {
    name: "a reader during batches sees all of a batch or nothing",
    async check(engine) {
      const store = await begin(engine);
      const paths = Array.from({ length: 20 }, (_, n) => `d${n % 3}/${n}`);
      let writing = true;
      const writer = (async () => {
        for (let round = 0; round < 30; round++) {
          const blob = (path: string) => (round % 2 === 0 ? tagged(`${round} ${path}`) : null);
          await store.commit(paths.map((path) => ({ path, blob: blob(path) })));
          await nextTurn();
        }
      })().finally(() => {
        writing = false;
      });
      while (writing) {
        expect(await store.count()).to.be.oneOf([0, paths.length]);
        expect((await store.list("", "", 100)).length).to.be.oneOf([0, paths.length]);
        await nextTurn();
      }
      await writer;
    },
  },
  {
    name: "single changes right after a batch of the same paths stand, also after reopening",
    async check(engine) {
      const store = await begin(engine);
      await seed(store);
      await store.commit(batch());
      await Promise.all(Object.keys(before).map((path) => write(store, path, tagged(`later ${path}`))));
      for (const each of [store, await engine.open()]) {
        for (const path of Object.keys(before)) expect(blobText(await mustRead(each, path))).to.equal(`later ${path}`);
      }
    },
  },
  {
    name: "a snapshot right after a batch has all of it",
    async check(engine) {
      const store = await begin(engine);
      await seed(store);
      await store.commit(batch());
      expect((await store.snapshot()).count).to.equal(Object.keys(after).length);
    },
  },
  {
    name: "a header is replaced only when it is the expected one, and the secrets stay",
    async check(engine) {
      const store = await begin(engine);
      await seed(store);
      expect(await store.replaceHeader(bytes("next"), bytes("another"))).to.equal(false);
      expect(text(await store.header())).to.equal(text(header));
      expect(await store.replaceHeader(bytes("next"), header)).to.equal(true);
      for (const each of [store, await engine.open()]) {
        expect([text(await each.header()), await readState(each)]).to.deep.equal(["next", before]);
      }
    },
  },
  {
    name: "a document is written only over the expected tag, and belongs to its vault",
    async check(engine) {
      const store = await begin(engine);
      expect(await store.readDocument("tokens")).to.equal(null);
      expect(await store.writeDocument("tokens", bytes("1"), "no tag")).to.equal(null);
      const first = await store.writeDocument("tokens", bytes("1"), null);
      expect([typeof first, await store.writeDocument("tokens", bytes("2"), null)]).to.deep.equal(["string", null]);
      const second = await store.writeDocument("tokens", bytes("2"), first);
      expect(await store.writeDocument("tokens", bytes("3"), first)).to.equal(null);
      for (const each of [store, await engine.open()]) {
        const found = await each.readDocument("tokens");
        expect([text(found?.bytes ?? null), found?.tag]).to.deep.equal(["2", second]);
        expect([await each.readDocument("other"), await each.count()]).to.deep.equal([null, 0]);
      }
      const again = await engine.open();
      await again.startNewVault(header);
      expect(await again.readDocument("tokens")).to.equal(null);
    },
  },
  {
    name: "a header is replaced with a document, or neither is when another program has changed the document",
    async check(engine) {
      const store = await begin(engine);
      const change = (expected: string | null) => ({ name: "tokens", bytes: bytes("2"), expected });
      const tag = await store.writeDocument("tokens", bytes("1"), null);
      for (const expected of [null, "no tag"]) {
        expect(await refusal(() => store.replaceHeader(bytes("next"), header, change(expected)))).to.equal(true);
        expect(await headerAndDocument(store)).to.deep.equal([text(header), "1"]);
      }
      expect(await store.replaceHeader(bytes("next"), bytes("another"), change(tag))).to.equal(false);
      expect(await headerAndDocument(store)).to.deep.equal([text(header), "1"]);
      expect(await store.replaceHeader(bytes("next"), header, change(tag))).to.equal(true);
      for (const each of [store, await engine.open()])
        expect(await headerAndDocument(each)).to.deep.equal(["next", "2"]);
    },
  },
  {
    name: "a new vault has its documents from its first moment on, also after reopening",
    async check(engine) {
      const store = await begin(engine);
      await store.writeDocument("tokens", bytes("of the old vault"), null);
      const documents = ["tokens", "others"].map((name) => ({ name, bytes: bytes(name) }));
      await store.startNewVault(header.slice(), documents);
      for (const each of [store, await engine.open()]) {
        for (const { name } of documents) expect(text((await each.readDocument(name))?.bytes ?? null)).to.equal(name);
      }
    },
  },
  ...faults.map(
    (fault): Rule => ({
      name: `a batch with ${fault} at any step is refused or complete, never a part, and the next changes work`,
      check: (engine) => everyStep(engine, fault, commitFaulty),
    }),
  ),
  {
    name: "a batch on a disk that fails permanently from any step on is refused or complete, never a part",
    check: (engine) => everyStep({ ...engine, failOnce: engine.failFrom }, "EIO", commitFaulty),
  },
  ...faults.map(
    (fault): Rule => ({
      name: `a header replaced together with a document, with ${fault} at any step, is never new beside an old document`,
      check: (engine) => everyStep(engine, fault, replaceBothFaulty),
    }),
  ),
  ...faults.map(
    (fault): Rule => ({
      name: `a new vault with documents, with ${fault} at any step, is never current without them`,
      check: (engine) => everyStep(engine, fault, startFaulty),
    }),
  ),
  ...faults.map(
    (fault): Rule => ({
      name: `a header replaced with ${fault} at any step is the old or the new one, and so is a document`,
      check: (engine) => everyStep(engine, fault, replaceFaulty),
    }),
  ),
];

type State = Readonly<Record<string, string>>;

const before: State = { "a/b": "old", "a/removed": "old", kept: "old" };
const after: State = { "a/b": "new", kept: "old", "new/tree/c": "new" };

async function seed(store: SecretStore): Promise<void> {
  for (const [path, content] of Object.entries(before)) await write(store, path, tagged(content));
}

function batch(): Change[] {
  return [
    { path: "a/b", blob: tagged("new"), expected: "present" },
    { path: "a/removed", blob: null },
    { path: "new/tree/c", blob: tagged("new"), expected: "absent" },
  ];
}

async function readState(store: SecretStore): Promise<State> {
  const paths = await store.list("", "", 99);
  expect(await store.count()).to.equal(paths.length);
  const state: Record<string, string> = {};
  for (const path of paths) state[path] = blobText(await mustRead(store, path));
  return state;
}

/** The snapshot needs the commits to be applied. */
async function commitFaulty(store: SecretStore, withFault: WithFault): Promise<Check> {
  await store.startNewVault(header);
  await seed(store);
  let done = false;
  await withFault(async () => {
    await store.commit(batch());
    done = true;
    await store.commit([
      { path: "a/b", blob: tagged("new") },
      { path: "kept", blob: tagged("old") },
    ]);
    await store.snapshot();
  });
  const state = await readState(store);
  expect(state).to.be.deep.oneOf(done ? [after] : [before, after]);
  await write(store, "a/removed", tagged("later"));
  return async (reopened) => {
    expect(await readState(reopened)).to.deep.equal({ ...state, "a/removed": "later" });
  };
}

async function replaceFaulty(store: SecretStore, withFault: WithFault): Promise<Check> {
  await store.startNewVault(header);
  await seed(store);
  const refused = await withFault(() => store.replaceHeader(bytes("next"), header));
  const now = text(await store.header());
  expect(now).to.be.oneOf(refused ? ["next", text(header)] : ["next"]);
  const refusedDocument = await withFault(() => store.writeDocument("tokens", bytes("1"), null));
  const found = text((await store.readDocument("tokens"))?.bytes ?? null);
  expect(found).to.be.oneOf(refusedDocument ? ["none", "1"] : ["1"]);
  return async (reopened) => {
    expect([text(await reopened.header()), await readState(reopened)]).to.deep.equal([now, before]);
    expect(text((await reopened.readDocument("tokens"))?.bytes ?? null)).to.equal(found);
  };
}

async function headerAndDocument(store: SecretStore): Promise<readonly string[]> {
  return [text(await store.header()), text((await store.readDocument("tokens"))?.bytes ?? null)];
}

async function replaceBothFaulty(store: SecretStore, withFault: WithFault): Promise<Check> {
  await store.startNewVault(header);
  const expected = await store.writeDocument("tokens", bytes("1"), null);
  const change = { name: "tokens", bytes: bytes("2"), expected };
  const refused = await withFault(() => store.replaceHeader(bytes("next"), header, change));
  const possible = refused ? ["header 1", "header 2", "next 2"] : ["next 2"];
  const is = async (each: SecretStore) => (await headerAndDocument(each)).join(" ").replace(text(header), "header");
  expect(await is(store)).to.be.oneOf(possible);
  return async (reopened) => {
    expect(await is(reopened)).to.be.oneOf(possible);
  };
}

async function startFaulty(store: SecretStore, withFault: WithFault): Promise<Check> {
  await store.startNewVault(header);
  const documents = [{ name: "tokens", bytes: bytes("1") }];
  const refused = await withFault(() => store.startNewVault(bytes("next"), documents));
  const possible = refused ? [`${text(header)} none`, "next 1"] : ["next 1"];
  return async (reopened) => {
    expect((await headerAndDocument(reopened)).join(" ")).to.be.oneOf(possible);
  };
}

let nonces = 0;

/** A blob with a tag of its own. */
function tagged(content: string): Bytes {
  return bytes(`SRVB\u0001....${String(++nonces).padEnd(24, "n")}${content}`);
}

function blobText(blob: Bytes): string {
  return text(blob).slice(33);
}
