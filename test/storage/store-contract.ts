/**
 * Contract of a secret store: rules for every engine. Each check throws when its rule is broken, so that the rules
 * themselves can be tested on defective stores.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect } from "chai";
import { blobFile } from "../../src/paths/file-name.js";
import type { SecretStore } from "../../src/storage/secret-store.js";
import type { Bytes } from "../../workers/protocol.js";
import { bytes } from "../support/bytes.js";
import { faults } from "../support/failing-files.js";
import { remove, write } from "../support/store-changes.js";
import { commitRules } from "./commit-contract.js";
import {
  begin,
  type Check,
  everyStep,
  header,
  mustRead,
  type Rule,
  random,
  refusal,
  text,
  type WithFault,
} from "./contract-engine.js";
import { spaceRules } from "./space-contract.js";

export const rules: readonly Rule[] = [
  ...commitRules,
  ...spaceRules,
  {
    name: "before the first vault there is no header and no secret",
    async check(engine) {
      const store = await engine.open();
      expect([await store.header(), await store.count(), await store.list("", "", 10)]).to.deep.equal([null, 0, []]);
      expect(await store.read("a")).to.equal(null);
    },
  },
  {
    name: "a new vault has its header and no secret, and returns where the old one is kept",
    async check(engine) {
      const store = await engine.open();
      expect(await store.startNewVault(bytes("first"))).to.equal(null);
      await write(store, "a", bytes("1"));
      expect(await store.startNewVault(bytes("second")))
        .to.be.a("string")
        .that.is.not.equal("");
      const again = await engine.open();
      for (const each of [store, again]) {
        expect(text(await each.header())).to.equal("second");
        expect([await each.count(), await each.list("", "", 9), await each.read("a")]).to.deep.equal([0, [], null]);
      }
    },
  },
  {
    name: "a blob is read back byte by byte, or its first bytes, also after reopening",
    async check(engine) {
      const blobs = [0, 1, 255, 4096, 65_537, 2 ** 20].map((size) => ({ path: `s/${size}`, blob: random(size) }));
      const store = await begin(engine);
      for (const { path, blob } of blobs) await write(store, path, blob.slice());
      for (const each of [store, await engine.open()]) {
        for (const { path, blob } of blobs) {
          expect(Buffer.compare(await mustRead(each, path), blob)).to.equal(0);
          expect(Buffer.compare((await each.read(path, 100)) ?? bytes("none"), blob.subarray(0, 100))).to.equal(0);
        }
      }
    },
  },
  {
    name: "changing bytes passed to or returned by the store changes nothing stored",
    async check(engine) {
      const store = await begin(engine);
      const given = bytes("as written");
      await write(store, "a", given);
      given.fill(0);
      for (let reading = 0; reading < 3; reading++) {
        const read = await mustRead(store, "a");
        expect(text(read)).to.equal("as written");
        read.fill(0);
      }
    },
  },
  {
    name: "a write replaces, a removal removes, and a second removal finds nothing",
    async check(engine) {
      const store = await begin(engine);
      await write(store, "a/b", bytes("old, and longer"));
      await write(store, "a/b", bytes("new"));
      expect(text(await mustRead(store, "a/b"))).to.equal("new");
      expect([await remove(store, "a/b"), await remove(store, "a/b"), await store.read("a/b")]).to.deep.equal([
        true,
        false,
        null,
      ]);
      const again = await engine.open();
      expect([await again.count(), await again.read("a/b")]).to.deep.equal([0, null]);
    },
  },
  {
    name: "similar paths never share a blob",
    async check(engine) {
      const alike = ["a", "A", "a/a", "a/a/a", "a.sealed", "a%2fa", "a.", ".a", "con", "å", "Å", "a b", "ａ"];
      const store = await begin(engine);
      for (const path of alike) await write(store, path, bytes(path));
      for (const each of [store, await engine.open()]) {
        for (const path of alike) expect(text(await mustRead(each, path))).to.equal(path);
        expect(await each.count()).to.equal(alike.length);
      }
    },
  },
  {
    name: "a list has the paths with a prefix and after a path, by UTF-8 bytes, up to a limit",
    async check(engine) {
      const ordered = ["a", "a-b", "a/b", "a/c", "ab", "b/a", "é", "\uffff", "\u{10000}"];
      const store = await begin(engine);
      for (const path of [...ordered].reverse()) await write(store, path, bytes(path));
      for (const each of [store, await engine.open()]) {
        expect(await each.list("", "", 100)).to.deep.equal(ordered);
        expect(await each.list("a", "", 100)).to.deep.equal(["a", "a-b", "a/b", "a/c", "ab"]);
        expect(await each.list("a/", "a/b", 100)).to.deep.equal(["a/c"]);
        expect(await each.list("", "a0", 3)).to.deep.equal(["ab", "b/a", "é"]);
        expect(await each.list("c", "", 100)).to.deep.equal([]);
      }
    },
  },
  {
    name: "the last of sequential writes to one path wins, also after reopening",
    async check(engine) {
      const store = await begin(engine);
      for (let version = 1; version <= 50; version++) await write(store, "a/b", bytes(`version ${version}`));
      for (const each of [store, await engine.open()]) {
        expect(text(await mustRead(each, "a/b"))).to.equal("version 50");
      }
    },
  },
  {
    name: "a reader during writes sees one whole version, and never an older one than before",
    async check(engine) {
      const store = await begin(engine);
      await write(store, "a/b", version(0));
      let writing = true;
      const writer = (async () => {
        for (let number = 1; number <= 100; number++) await write(store, "a/b", version(number));
      })().finally(() => {
        writing = false;
      });
      await Promise.all([writer, ...[1, 2, 3].map(() => readVersions(store, () => writing))]);
    },
  },
  {
    name: "concurrent writers and removers in shared directories each find their last change",
    async check(engine) {
      const store = await begin(engine);
      const last = new Map<string, string>();
      await Promise.all(Array.from({ length: 24 }, (_, client) => churn(store, client, last)));
      for (const each of [store, await engine.open()]) await mustEqual(each, last);
    },
  },
  {
    name: "a snapshot is a point in time during writes, and later changes do not affect it",
    async check(engine) {
      const store = await begin(engine);
      for (let filler = 0; filler < 200; filler++) await write(store, `filler/${filler}`, bytes(`${filler}`));
      for (let round = 0; round < 5; round++) await snapshotDuringWrites(store);
    },
  },
  {
    name: "a snapshot has the header and every secret unchanged",
    async check(engine) {
      const store = await begin(engine);
      const last = new Map<string, string>();
      await churn(store, 0, last);
      const { directory, count } = await store.snapshot();
      expect(count).to.equal(last.size);
      expect(text(readFileSync(join(directory, "header.json")))).to.equal(text(header));
      for (const [path, blob] of last) expect(inSnapshot(directory, path)).to.equal(blob);
    },
  },
  ...faults.map(
    (fault): Rule => ({
      name: `a write with ${fault} at any step is refused or complete, and the next one works`,
      check: (engine) => everyStep(engine, fault, writeFaulty),
    }),
  ),
  ...faults.map(
    (fault): Rule => ({
      name: `a removal with ${fault} at any step is refused or complete, also after reopening`,
      check: (engine) => everyStep(engine, fault, removeFaulty),
    }),
  ),
  ...faults.map(
    (fault): Rule => ({
      name: `a new vault with ${fault} at any step leaves the old one whole or replaces it`,
      check: (engine) => everyStep(engine, fault, startFaulty),
    }),
  ),
  {
    name: "a new vault on a disk that fails permanently from any step on leaves the old one whole or replaces it",
    check: (engine) => everyStep({ ...engine, failOnce: engine.failFrom }, "EIO", startFaulty),
  },
  ...faults.map(
    (fault): Rule => ({
      name: `a snapshot with ${fault} at any step is refused or whole, and writes continue`,
      check: (engine) => everyStep(engine, fault, snapshotFaulty),
    }),
  ),
];

async function writeFaulty(store: SecretStore, withFault: WithFault): Promise<Check> {
  await store.startNewVault(header);
  await write(store, "a/b", bytes("old"));
  const refused = await withFault(() => write(store, "a/b", bytes("new")));
  const allowed = refused ? ["old", "new"] : ["new"];
  expect(text(await mustRead(store, "a/b"))).to.be.oneOf(allowed);
  const refusedNew = await withFault(() => write(store, "new/tree/c", bytes("c")));
  if (!refusedNew) expect(text(await mustRead(store, "new/tree/c"))).to.equal("c");
  await write(store, "new/tree/d", bytes("d"));
  return async (reopened) => {
    expect(text(await mustRead(reopened, "a/b"))).to.be.oneOf(allowed);
    expect(text(await mustRead(reopened, "new/tree/d"))).to.equal("d");
    const found = await reopened.read("new/tree/c");
    if (!refusedNew || found !== null) expect(text(found)).to.equal("c");
  };
}

async function removeFaulty(store: SecretStore, withFault: WithFault): Promise<Check> {
  await store.startNewVault(header);
  await write(store, "a/b/c", bytes("c"));
  await write(store, "a/d", bytes("d"));
  const refused = await withFault(() => remove(store, "a/b/c"));
  if (!refused) expect(await store.read("a/b/c")).to.equal(null);
  if (refused) expect(await remove(store, "a/b/c"), "a refused removal can be repeated").to.equal(true);
  await write(store, "a/b/e", bytes("e"));
  return async (reopened) => {
    expect(await reopened.read("a/b/c")).to.equal(null);
    expect(await reopened.list("", "", 9)).to.deep.equal(["a/b/e", "a/d"]);
  };
}

async function startFaulty(store: SecretStore, withFault: WithFault): Promise<Check> {
  await store.startNewVault(bytes("old vault"));
  await write(store, "a", bytes("in the old one"));
  const refused = await withFault(() => store.startNewVault(bytes("new vault")));
  const later = await refusal(() => write(store, "b", bytes("later")));
  if (later) expect(refused, "a store that takes no more writes has refused the new vault").to.equal(true);
  const now = text(await store.header());
  return async (reopened) => {
    if (!refused) expect(text(await reopened.header())).to.equal("new vault");
    if (!later) expect(text(await mustRead(reopened, "b"))).to.equal("later");
    if (!later) expect(text(await reopened.header())).to.equal(now);
    if (text(await reopened.header()) === "old vault")
      expect(text(await mustRead(reopened, "a"))).to.equal("in the old one");
  };
}

async function snapshotFaulty(store: SecretStore, withFault: WithFault): Promise<Check> {
  await store.startNewVault(header);
  await write(store, "a/b", bytes("1"));
  await write(store, "c", bytes("2"));
  const taken: string[] = [];
  const refused = await withFault(async () => taken.push((await store.snapshot()).directory));
  if (!refused) expect([inSnapshot(taken[0] ?? "", "a/b"), inSnapshot(taken[0] ?? "", "c")]).to.deep.equal(["1", "2"]);
  await write(store, "c", bytes("3"));
  const { directory } = await store.snapshot();
  expect(inSnapshot(directory, "c")).to.equal("3");
  return async (reopened) => {
    expect(text(await mustRead(reopened, "c"))).to.equal("3");
  };
}

async function snapshotDuringWrites(store: SecretStore): Promise<void> {
  for (const path of ["first", "second"]) await write(store, path, bytes("0"));
  let writing = true;
  const writer = (async () => {
    for (let number = 1; writing; number++) {
      await write(store, "first", bytes(`${number}`));
      await write(store, "second", bytes(`${number}`));
      await nextTurn();
    }
  })();
  const { directory } = await store.snapshot().finally(() => {
    writing = false;
  });
  const seen = ["first", "second"].map((path) => Number(inSnapshot(directory, path)));
  await writer;
  await remove(store, "filler/0");
  await write(store, "filler/1", bytes("later"));
  const [first = -1, second = -1] = seen;
  expect(first - second, "the second write follows the first").to.be.oneOf([0, 1]);
  expect(["first", "second"].map((path) => Number(inSnapshot(directory, path)))).to.deep.equal(seen);
  expect(inSnapshot(directory, "filler/0")).to.equal("0");
  expect(inSnapshot(directory, "filler/1")).to.equal("1");
  for (const filler of [0, 1]) await write(store, `filler/${filler}`, bytes(`${filler}`));
}

/** Writes and removes at its own paths, in shared directories. */
async function churn(store: SecretStore, client: number, last: Map<string, string>): Promise<void> {
  for (let turn = 0; turn < 40; turn++) {
    const path = `d${turn % 3}/e${turn % 5}/${client}-${turn % 7}`;
    if (turn % 4 === 3) {
      expect(await remove(store, path)).to.equal(last.delete(path));
      continue;
    }
    await write(store, path, bytes(`${client} ${turn}`));
    last.set(path, `${client} ${turn}`);
  }
}

async function mustEqual(store: SecretStore, wanted: ReadonlyMap<string, string>): Promise<void> {
  expect(await store.count()).to.equal(wanted.size);
  expect(await store.list("", "", wanted.size + 1)).to.have.members([...wanted.keys()]);
  for (const [path, blob] of wanted) expect(text(await mustRead(store, path))).to.equal(blob);
}

async function readVersions(store: SecretStore, going: () => boolean): Promise<void> {
  for (let newest = 0; going(); ) {
    const read = await mustRead(store, "a/b");
    const number = read[0] ?? -1;
    expect(Buffer.compare(read, version(number)), "a whole version").to.equal(0);
    expect(number).to.be.at.least(newest);
    newest = number;
    await nextTurn();
  }
}

/** A blob of unique size and content. */
function version(number: number): Bytes {
  const blob = new Uint8Array(new ArrayBuffer(1000 + 37 * number));
  return blob.fill(number);
}

function inSnapshot(directory: string, path: string): string {
  return readFileSync(blobFile(join(directory, "secrets"), path), "utf8");
}
