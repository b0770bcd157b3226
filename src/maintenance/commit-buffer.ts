/** Blobs on their way into a store, gathered for commits of a useful size. */
import type { Change, SecretStore } from "../storage/secret-store.js";

/** Limits of one commit, which may exceed them by one slice. */
const maxChanges = 100;
const maxCommitBytes = 4 * 2 ** 20;

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
    [this.#changes, this.#bytes] = [[], 0]; // first: others may be added during the commit
    if (changes.length > 0) await this.#store.commit(changes);
    this.committed += changes.length;
  }
}
