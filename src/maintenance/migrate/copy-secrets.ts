/** Copying and comparing of sealed secrets between two stores, page by page in bounded memory. */
import type { Bytes } from "../../../workers/protocol.js";
import type { Change, SecretStore } from "../../storage/secret-store.js";
import { changedSource, MigrationError } from "./migration-error.js";

export type Phase = "copying" | "comparing";

/** Progress and cancellation. */
export type Watch = {
  readonly tick: (phase: Phase, done: number, total: number) => void;
  readonly signal: AbortSignal;
};

/** Paths in one page. */
const pageSize = 1000;

/** Blobs in memory at once, while they are read. */
const readsAtOnce = 16;

/** Limits of one commit, which may exceed them by one slice. */
const maxChanges = 100;
const maxCommitBytes = 4 * 2 ** 20;

/** Copies what is missing or, when `resumed`, differs; returns the number of copied secrets. */
export async function copySecrets(
  from: SecretStore,
  to: SecretStore,
  resumed: boolean,
  { tick, signal }: Watch,
): Promise<number> {
  const total = await from.count();
  const buffer = new CommitBuffer(to);
  const copyOne = async (path: string) => {
    const blob = await mustRead(from, path);
    if (!resumed || !same(blob, await to.read(path))) buffer.add({ path, blob });
    else await to.settle(path); // the interrupted migration may have been killed before it was durable
  };
  let done = 0;
  for await (const paths of slicesOf(from, readsAtOnce, signal)) {
    await Promise.all(paths.map(copyOne));
    if (buffer.isFull) await buffer.commit();
    done += paths.length;
    tick("copying", done, total);
  }
  await buffer.commit();
  return buffer.committed;
}

/** Gathers secrets for commits of a useful size. */
export class CommitBuffer {
  committed = 0;
  readonly #store: SecretStore;
  #changes: Change[] = [];
  #bytes = 0;

  constructor(store: SecretStore) {
    this.#store = store;
  }

  get isFull(): boolean {
    return this.#changes.length >= maxChanges || this.#bytes >= maxCommitBytes;
  }

  add(change: Change): void {
    this.#changes.push(change);
    this.#bytes += change.blob?.length ?? 0;
  }

  async commit(): Promise<void> {
    const changes = this.#changes;
    [this.#changes, this.#bytes] = [[], 0]; // first: others may be added meanwhile
    if (changes.length > 0) await this.#store.commit(changes);
    this.committed += changes.length;
  }
}

/** Removes secrets of the copy that are no longer in the source, which was used after the interruption. */
export async function removeOthers(from: SecretStore, to: SecretStore, { signal }: Watch): Promise<void> {
  for await (const paths of slicesOf(to, readsAtOnce, signal)) {
    const wanted = await Promise.all(paths.map((path) => from.read(path, 1)));
    const others = paths.filter((_, i) => wanted[i] === null);
    if (others.length > 0) await to.commit(others.map((path) => ({ path, blob: null })));
  }
}

/** Reads both and compares every byte; returns the number of secrets. @throws MigrationError changed */
export async function verifySecrets(from: SecretStore, to: SecretStore, { tick, signal }: Watch): Promise<number> {
  const total = await from.count();
  let done = 0;
  const compare = async (path: string) => {
    if (!same(await mustRead(from, path), await to.read(path))) throw changedSource(to);
  };
  for await (const paths of slicesOf(from, readsAtOnce, signal)) {
    await Promise.all(paths.map(compare));
    done += paths.length;
    tick("comparing", done, total);
  }
  if ((await to.count()) !== done) throw changedSource(to);
  return done;
}

/** Yields all paths in order, in slices. @throws MigrationError aborted */
async function* slicesOf(store: SecretStore, size: number, signal: AbortSignal): AsyncGenerator<readonly string[]> {
  for (let after = ""; ; ) {
    const page = await store.list("", after, pageSize);
    for (let at = 0; at < page.length; at += size) {
      if (signal.aborted) throw new MigrationError("aborted", "interrupted: run the same command again to go on");
      yield page.slice(at, at + size);
    }
    const last = page.at(-1);
    if (last === undefined) return;
    after = last;
  }
}

async function mustRead(store: SecretStore, path: string): Promise<Bytes> {
  const blob = await store.read(path);
  if (blob === null) throw changedSource(store);
  return blob;
}

export function same(a: Bytes | null, b: Bytes | null): boolean {
  return a === null || b === null ? a === b : Buffer.compare(a, b) === 0;
}
