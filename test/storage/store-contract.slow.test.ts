/** The store contract on every engine, and on defective stores, each of which must fail it. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect } from "chai";
import { VaultError } from "../../src/errors.js";
import { FileStore } from "../../src/storage/files/file-store.js";
import type { Change, CommitResult, SecretStore } from "../../src/storage/secret-store.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import type { Bytes } from "../../workers/protocol.js";
import { failingFiles } from "../support/failing-files.js";
import { type Kept, MemoryStore, nothingKept } from "../support/memory-store.js";
import type { Engine } from "./contract-engine.js";
import { rules } from "./store-contract.js";

function fileEngine(directory: string): Engine {
  const { files, failOnce, failFrom, repair } = failingFiles();
  let opened: FileStore | null = null;
  later(async () => opened?.close());
  return {
    failOnce,
    failFrom,
    repair,
    async open() {
      await opened?.close();
      opened = await FileStore.open(directory, files);
      return opened;
    },
  };
}

function memoryEngine(make: (kept: Kept, step: () => void) => SecretStore): Engine {
  const kept = nothingKept();
  let due = 0;
  let forGood = false;
  let occurred = false;
  const step = () => {
    if (due === 0) return;
    if (due > 1) due--;
    else {
      occurred = true;
      if (!forGood) due = 0;
      throw new Error("injected");
    }
  };
  const order = (k: number, always: boolean) => {
    [due, forGood, occurred] = [k, always, false];
  };
  return {
    open: async () => make(kept, step),
    failOnce: (k) => order(k, false),
    failFrom: (k) => order(k, true),
    repair() {
      due = 0;
      return occurred;
    },
  };
}

describe("the store contract on files", () => {
  for (const { name, check } of rules) {
    it(name, async () => {
      const directory = temporaryDirectory();
      const engine = fileEngine(directory);
      await check(engine);
      await (await engine.open()).close();
      const names = readdirSync(directory, { recursive: true }).map(String);
      const leftovers = names.filter((each) => /tmp-|snapshot-/.test(each));
      expect([...leftovers, ...emptyDirectories(directory)], "leftovers").to.deep.equal([]);
    });
  }
});

describe("the store contract in memory", () => {
  for (const { name, check } of rules) {
    it(name, () => check(memoryEngine((kept, step) => new MemoryStore(kept, step))));
  }
});

/** Empty directories in the trees of secrets. */
function emptyDirectories(directory: string): string[] {
  const entries = readdirSync(directory, { withFileTypes: true });
  if (entries.length === 0) return directory.includes("/secrets/") ? [directory] : [];
  return entries.flatMap((entry) => (entry.isDirectory() ? emptyDirectories(join(directory, entry.name)) : []));
}

const done: CommitResult = { committed: true };

/** Stores with one defect each. */
const defects: Readonly<Record<string, (kept: Kept, step: () => void) => SecretStore>> = {
  "acknowledges a write before it is stored": (kept, step) =>
    new (class extends MemoryStore {
      override async commit(changes: readonly Change[]): Promise<CommitResult> {
        setTimeout(() => void super.commit(changes).catch(() => {}), 5);
        return done;
      }
    })(kept, step),
  "forgets everything when reopened": (_, step) => new MemoryStore(nothingKept(), step),
  "returns its own bytes": (kept, step) =>
    new (class extends MemoryStore {
      override async read(path: string): Promise<Bytes | null> {
        return kept.blobs.get(path) ?? null;
      }
    })(kept, step),
  "keeps the caller's bytes": (kept, step) =>
    new (class extends MemoryStore {
      override async commit(changes: readonly Change[]): Promise<CommitResult> {
        const result = await super.commit(changes);
        for (const { path, blob } of changes) if (blob !== null) kept.blobs.set(path, blob);
        return result;
      }
    })(kept, step),
  "lists by UTF-16 units": (kept, step) =>
    new (class extends MemoryStore {
      override async list(prefix: string, after: string, limit: number): Promise<readonly string[]> {
        const paths = [...kept.blobs.keys()].sort();
        return paths.filter((path) => path.startsWith(prefix) && path > after).slice(0, limit);
      }
    })(kept, step),
  "treats a prefix as a directory": (kept, step) =>
    new (class extends MemoryStore {
      override list(prefix: string, after: string, limit: number): Promise<readonly string[]> {
        return super.list(prefix === "a" ? "a/" : prefix, after, limit);
      }
    })(kept, step),
  "ignores case": (kept, step) =>
    new (class extends MemoryStore {
      override read(path: string, first?: number): Promise<Bytes | null> {
        return super.read(path.toLowerCase(), first);
      }
      override commit(changes: readonly Change[]): Promise<CommitResult> {
        return super.commit(changes.map((change) => ({ ...change, path: change.path.toLowerCase() })));
      }
    })(kept, step),
  "loses the old value when a write fails": (kept, step) =>
    new (class extends MemoryStore {
      override async commit(changes: readonly Change[]): Promise<CommitResult> {
        const failed = (error: unknown) => {
          for (const { path } of changes) kept.blobs.delete(path);
          throw error;
        };
        return super.commit(changes).catch(failed);
      }
    })(kept, step),
  "keeps half of a failed write": (kept, step) =>
    new (class extends MemoryStore {
      override async commit(changes: readonly Change[]): Promise<CommitResult> {
        return super.commit(changes).catch((error: unknown) => {
          for (const { path, blob } of changes) {
            if (blob !== null) kept.blobs.set(path, blob.slice(0, blob.length >>> 1));
          }
          throw error;
        });
      }
    })(kept, step),
  "reports a failed removal as done": (kept, step) =>
    new (class extends MemoryStore {
      override async commit(changes: readonly Change[]): Promise<CommitResult> {
        const removes = changes.some(({ blob }) => blob === null);
        return super.commit(changes).catch((error: unknown) => {
          if (removes) return done;
          throw error;
        });
      }
    })(kept, step),
  "reports a failed write as done": (kept, step) =>
    new (class extends MemoryStore {
      override async commit(changes: readonly Change[]): Promise<CommitResult> {
        return super.commit(changes).catch(() => done);
      }
    })(kept, step),
  "throws errors of its own": (kept, step) =>
    new (class extends MemoryStore {
      override async commit(changes: readonly Change[]): Promise<CommitResult> {
        step();
        return super.commit(changes);
      }
    })(kept, step),
  "ignores expected tags": (kept, step) =>
    new (class extends MemoryStore {
      override async commit(changes: readonly Change[]): Promise<CommitResult> {
        const lax = ({ path, blob, expected }: Change) => {
          return typeof expected === "object" ? { path, blob } : { path, blob, ...(expected && { expected }) };
        };
        return super.commit(changes.map(lax));
      }
    })(kept, step),
  "checks only the first of many changes": (kept, step) =>
    new (class extends MemoryStore {
      override async commit(changes: readonly Change[]): Promise<CommitResult> {
        const lax = ({ path, blob }: Change, at: number) => (at === 0 ? changes[0] : undefined) ?? { path, blob };
        return super.commit(changes.map(lax));
      }
    })(kept, step),
  "makes the changes of a batch one by one": (kept, step) =>
    new (class extends MemoryStore {
      override async commit(changes: readonly Change[]): Promise<CommitResult> {
        for (const [refused, change] of changes.entries()) {
          if (!(await super.commit([change])).committed) return { committed: false, refused };
        }
        return done;
      }
    })(kept, step),
  "shows a batch bit by bit": (kept, step) =>
    new (class extends MemoryStore {
      override async commit(changes: readonly Change[]): Promise<CommitResult> {
        const all = await super.commit(changes);
        if (!all.committed || changes.length < 2) return all;
        const later = changes
          .slice(1)
          .flatMap(({ path, blob }) => (blob === null ? [] : [[path, blob.slice()] as const]));
        for (const [path] of later) kept.blobs.delete(path);
        for (const [path, blob] of later) {
          await nextTurn();
          kept.blobs.set(path, blob);
        }
        return all;
      }
    })(kept, step),
  "replaces any header": (kept, step) =>
    new (class extends MemoryStore {
      override async replaceHeader(header: Bytes): Promise<boolean> {
        return super.replaceHeader(header, kept.header ?? header);
      }
    })(kept, step),
  "writes documents without looking at their tag": (kept, step) =>
    new (class extends MemoryStore {
      override async writeDocument(name: string, bytes: Bytes): Promise<string | null> {
        return super.writeDocument(name, bytes, (await this.readDocument(name))?.tag ?? null);
      }
    })(kept, step),
  "keeps the documents of an old vault": (kept, step) =>
    new (class extends MemoryStore {
      override async startNewVault(header: Bytes): Promise<string | null> {
        const { documents } = kept;
        const before = await super.startNewVault(header);
        kept.documents = documents;
        return before;
      }
    })(kept, step),
  "takes its snapshot gradually": (kept, step) =>
    new (class extends MemoryStore {
      override async snapshot() {
        const late = kept.blobs.get("second");
        const picture = await super.snapshot();
        if (late === undefined) return picture;
        await new Promise((resolve) => setTimeout(resolve, 5));
        const newer = { ...kept, blobs: new Map([...kept.blobs, ["second", late]]) };
        return new MemoryStore(newer, step).snapshot();
      }
    })(kept, step),
  "puts old secrets into a new vault": (kept, step) =>
    new (class extends MemoryStore {
      override async startNewVault(header: Bytes): Promise<string | null> {
        const { blobs } = kept;
        const before = await super.startNewVault(header);
        kept.blobs = blobs;
        return before;
      }
    })(kept, step),
};

describe("stores with a defect", () => {
  for (const [defect, make] of Object.entries(defects)) {
    it(`the contract detects a store that ${defect}`, async () => {
      expect(await brokenRules(() => memoryEngine(make))).to.not.equal(0);
    });
  }
});

async function brokenRules(engine: () => Engine): Promise<number> {
  let broken = 0;
  for (const { check } of rules) {
    await check(engine()).catch((error: unknown) => {
      if (!(error instanceof Error) || error instanceof VaultError) throw error;
      broken++;
    });
  }
  return broken;
}
