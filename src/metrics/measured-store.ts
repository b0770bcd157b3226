/** Secret store that reports how long each call took to the observers. */
import type { Observers, StorageCall } from "../observer.js";
import type { SecretStore } from "../storage/secret-store.js";

export function measuredStore(store: SecretStore, observers: Observers): SecretStore {
  const measure = async <T>(call: StorageCall, work: () => Promise<T>): Promise<T> => {
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
  return {
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
