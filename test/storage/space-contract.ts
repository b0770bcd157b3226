/** Store contract, part three: the spaces beside the secrets, and commits that change several of them. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { blobFile } from "../../src/paths/file-name.js";
import { blobTag } from "../../src/storage/blob-tag.js";
import { type Change, type SecretStore, type Space, spaces } from "../../src/storage/secret-store.js";
import type { Bytes } from "../../workers/protocol.js";
import { bytes } from "../support/bytes.js";
import { faults } from "../support/failing-files.js";
import { begin, type Check, everyStep, header, type Rule, text, type WithFault } from "./contract-engine.js";

export const spaceRules: readonly Rule[] = [
  {
    name: "one path has a blob of its own in each space, which lists, counts and removals of another do not see",
    async check(engine) {
      const store = await begin(engine);
      for (const space of spaces) await store.commit([{ space, path: "a/b", blob: bytes(space) }]);
      await store.commit([{ space: "trash", path: "a/c", blob: bytes("more") }]);
      for (const each of [store, await engine.open()]) {
        expect(await readContents(each)).to.deep.equal({
          "secrets a/b": "secrets",
          "trash a/b": "trash",
          "trash a/c": "more",
          "keys a/b": "keys",
        });
        expect(await Promise.all(spaces.map((space) => each.count(space)))).to.deep.equal([1, 2, 1]);
        expect([await each.count(), await each.list("", "", 9)]).to.deep.equal([1, ["a/b"]]);
        expect(await each.list("a/", "a/b", 9, "trash")).to.deep.equal(["a/c"]);
        expect(text(await each.read("a/b", 2, "keys"))).to.equal("ke");
        await each.flush("a/b", "trash");
      }
      const [last] = [await engine.open()];
      expect(await last.commit([{ space: "trash", path: "a/b", blob: null }])).to.deep.equal({ committed: true });
      for (const each of [last, await engine.open()]) {
        expect(Object.keys(await readContents(each))).to.deep.equal(["secrets a/b", "trash a/c", "keys a/b"]);
      }
    },
  },
  {
    name: "a change beside the secrets is made only in the expected state",
    async check(engine) {
      const store = await begin(engine);
      const [first, second] = [tagged("first"), tagged("second")];
      const attempts: readonly (readonly [Bytes | null, Change["expected"] & {}, boolean])[] = [
        [first, "present", false],
        [first, { tag: blobTag(first) }, false],
        [null, "present", false],
        [first, "absent", true],
        [second, "absent", false],
        [null, "absent", false],
        [second, { tag: blobTag(second) }, false],
        [second, { tag: blobTag(first) }, true],
        [first, { tag: blobTag(second), whole: second }, true],
        [second, "present", true],
        [null, { tag: blobTag(first) }, false],
        [null, { tag: blobTag(second) }, true],
        [null, "absent", true],
      ];
      for (const [at, [blob, expected, committed]] of attempts.entries()) {
        const result = await store.commit([{ space: "keys", path: "a/b", blob, expected }]);
        expect(result, `attempt ${at}`).to.deep.equal(committed ? { committed } : { committed, refused: 0 });
      }
    },
  },
  {
    name: "a move between spaces is one step, refused as a whole",
    async check(engine) {
      const store = await begin(engine);
      await store.commit([{ path: "a/b", blob: tagged("first") }]);
      expect(await store.commit(toTrash("other"))).to.deep.equal({ committed: false, refused: 0 });
      expect(await readContents(store)).to.deep.equal({ "secrets a/b": text(tagged("first")) });
      expect(await store.commit(toTrash("first"))).to.deep.equal({ committed: true });
      for (const each of [store, await engine.open()]) {
        expect(await readContents(each)).to.deep.equal({ "trash a/b": text(tagged("first")) });
        expect(await each.count()).to.equal(0);
      }
      const again = await engine.open();
      expect(await again.commit([{ path: "a/b", blob: tagged("first"), expected: "absent" }])).to.deep.equal({
        committed: true,
      });
    },
  },
  {
    name: "a new vault has nothing in any space",
    async check(engine) {
      const store = await begin(engine);
      for (const space of spaces) await store.commit([{ space, path: "a/b", blob: bytes(space) }]);
      await store.startNewVault(bytes("second"));
      for (const each of [store, await engine.open()]) expect(await readContents(each)).to.deep.equal({});
    },
  },
  {
    name: "a snapshot has the blobs of every space, and counts the secrets",
    async check(engine) {
      const store = await begin(engine);
      for (const space of spaces) await store.commit([{ space, path: "a/b", blob: bytes(space) }]);
      await store.commit([{ space: "keys", path: "more", blob: bytes("more") }]);
      const { directory, count } = await store.snapshot();
      for (const space of spaces) await store.commit([{ space, path: "a/b", blob: null }]);
      expect(count).to.equal(1);
      for (const space of spaces) expect(readFileSync(pathOnDisk(directory, space, "a/b"), "utf8")).to.equal(space);
      expect(existsSync(pathOnDisk(directory, "keys", "more"))).to.equal(true);
    },
  },
  ...faults.map(
    (fault): Rule => ({
      name: `a move between spaces with ${fault} at any step never leaves both or neither`,
      check: (engine) => everyStep(engine, fault, moveFaulty),
    }),
  ),
];

async function moveFaulty(store: SecretStore, withFault: WithFault): Promise<Check> {
  await store.startNewVault(header);
  await store.commit([{ path: "a/b", blob: tagged("first") }]);
  const refused = await withFault(() => store.commit(toTrash("first")));
  const now = await readContents(store);
  const [stayed, moved] = [{ "secrets a/b": text(tagged("first")) }, { "trash a/b": text(tagged("first")) }];
  expect(now).to.be.deep.oneOf(refused ? [stayed, moved] : [moved]);
  return async (reopened) => {
    expect(await readContents(reopened)).to.be.deep.oneOf(refused ? [stayed, moved] : [moved]);
  };
}

function toTrash(content: string): Change[] {
  const blob = tagged(content);
  return [
    { path: "a/b", blob: null, expected: { tag: blobTag(blob) } },
    { space: "trash", path: "a/b", blob },
  ];
}

async function readContents(store: SecretStore): Promise<Record<string, string>> {
  const contents: Record<string, string> = {};
  for (const space of spaces) {
    for (const path of await store.list("", "", 99, space))
      contents[`${space} ${path}`] = text(await store.read(path, undefined, space));
  }
  return contents;
}

/** A blob with a tag of its own. */
function tagged(content: string): Bytes {
  return bytes(`SRVB 0000${content.padEnd(24, "n")}the rest`);
}

function pathOnDisk(directory: string, space: Space, path: string): string {
  return blobFile(join(directory, space), path);
}
