/** Secret store that reports how long each call took to the observers. */
import type { Observers, StorageCall } from "../observer.js";
import type { SecretStore, SharedStore } from "../storage/secret-store.js";

type Measure = <T>(call: StorageCall, work: () => Promise<T>) => Promise<T>;

export function measuredStore(store: SecretStore, observers: Observers): SecretStore {
  const measure: Measure = async (call, work) => {
    const began = performance.now();
    let failed = true;
    try {
      const result = await work();
      failed = false;
      return result;
    } finally {
      observers.storageReplied(call, performance.now() - began, failed);
    }
  };
  const { shared } = store;
  return {
    ...(shared && { shared: measuredShared(shared, measure) }),
    vaultPath: store.vaultPath,
    header: () => measure("header", () => store.header()),
    count: () => measure("count", () => store.count()),
    list: (...args) => measure("list", () => store.list(...args)),
    read: (...args) => measure("read", () => store.read(...args)),
    commit: (changes) => measure("commit", () => store.commit(changes)),
    startNewVault: (header) => measure("startNewVault", () => store.startNewVault(header)),
    replaceHeader: (...args) => measure("replaceHeader", () => store.replaceHeader(...args)),
    readDocument: (name) => measure("readDocument", () => store.readDocument(name)),
    writeDocument: (...args) => measure("writeDocument", () => store.writeDocument(...args)),
    snapshot: () => measure("snapshot", () => store.snapshot()),
    freeze: (reader) => measure("freeze", () => store.freeze(reader)),
    close: () => store.close(),
  };
}

function measuredShared(shared: SharedStore, measure: Measure): SharedStore {
  return {
    get generation() {
      return shared.generation;
    },
    onReplaced: (listener) => shared.onReplaced(listener),
    confirm: () => measure("header", () => shared.confirm()),
    alone: (work) => shared.alone(work),
    commitOn: (...args) => measure("commit", () => shared.commitOn(...args)),
    documentTag: (name) => measure("readDocument", () => shared.documentTag(name)),
    listWithHeads: (...args) => measure("list", () => shared.listWithHeads(...args)),
  };
}
