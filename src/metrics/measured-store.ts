/** Secret store that reports how long each call took to the observers. */
import { VaultError } from "../errors.js";
import type { Observers, StorageCall } from "../observer.js";
import type { SecretStore, SharedStore } from "../storage/secret-store.js";

type Measure = <T>(call: StorageCall, work: () => Promise<T>) => Promise<T>;

/** All members, also the optional ones of a store: a member that is forgotten here does not compile. */
type Own = { readonly [M in Exclude<keyof SecretStore, "shared">]-?: SecretStore[M] };
type Shared = { readonly [M in keyof SharedStore]-?: SharedStore[M] };

export function measuredStore(store: SecretStore, observers: Observers): SecretStore {
  const measure: Measure = async (call, work) => {
    const began = performance.now();
    try {
      const result = await work();
      observers.storageReturned(call, performance.now() - began, false);
      return result;
    } catch (error) {
      const failed = !(error instanceof VaultError && error.code === "VAULT_LOCKED"); // it returned: of another vault
      observers.storageReturned(call, performance.now() - began, failed);
      throw error;
    }
  };
  const own: Own = {
    vaultPath: store.vaultPath,
    header: () => measure("header", () => store.header()),
    count: (...args) => measure("count", () => store.count(...args)),
    list: (...args) => measure("list", () => store.list(...args)),
    read: (...args) => measure("read", () => store.read(...args)),
    commit: (changes) => measure("commit", () => store.commit(changes)),
    flush: (...args) => measure("commit", () => store.flush(...args)),
    startNewVault: (...args) => measure("startNewVault", () => store.startNewVault(...args)),
    replaceHeader: (...args) => measure("replaceHeader", () => store.replaceHeader(...args)),
    readDocument: (name) => measure("readDocument", () => store.readDocument(name)),
    writeDocument: (...args) => measure("writeDocument", () => store.writeDocument(...args)),
    snapshot: () => measure("snapshot", () => store.snapshot()),
    freeze: (reader) => measure("freeze", () => store.freeze(reader)),
    close: () => store.close(),
  };
  return store.shared === undefined ? own : { ...own, shared: measuredShared(store.shared, measure) };
}

function measuredShared(shared: SharedStore, measure: Measure): Shared {
  return {
    get generation() {
      return shared.generation;
    },
    onReplaced: (listener) => shared.onReplaced(listener),
    confirm: () => measure("confirm", () => shared.confirm()),
    serverConnections: () => shared.serverConnections(),
    currentRun: () => shared.currentRun(), // once a sweep
    foreignOwner: shared.foreignOwner,
    foreignRows: () => shared.foreignRows(), // maintenance alone asks
    alone: (work, path) => shared.alone(work, path), // the work's own calls are measured
    commitOn: (...args) => measure("commit", () => shared.commitOn(...args)),
    documentTags: (names) => measure("documentTags", () => shared.documentTags(names)),
    listWithHeads: (...args) => measure("list", () => shared.listWithHeads(...args)),
  };
}
