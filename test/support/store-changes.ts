/** Single unconditional changes of a store. */
import type { SecretStore } from "../../src/storage/secret-store.js";
import type { Bytes } from "../../workers/protocol.js";

export async function write(store: SecretStore, path: string, blob: Bytes): Promise<void> {
  await store.commit([{ path, blob }]);
}

/** Returns false when there is nothing to remove. */
export async function remove(store: SecretStore, path: string): Promise<boolean> {
  return (await store.commit([{ path, blob: null, expected: "present" }])).committed;
}
