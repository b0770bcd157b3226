/** Index of bindings while another vault takes the place of the one that it reads. */
import { expect } from "chai";
import { VaultError } from "../../src/errors.js";
import type { VaultSecrets } from "../../src/vault/secrets.js";
import { UseIndex } from "../../src/vault/uses.js";
import type { Binding } from "../../workers/protocol.js";
import { FakeClock } from "../support/manual-clock.js";

describe("the index of bindings", () => {
  it("says that the vault is locked when it is replaced during an update", async () => {
    let changed: (paths: readonly string[]) => void = () => {};
    let read: () => Promise<readonly (readonly Binding[])[]> = async () => [[]];
    const secrets = {
      watch: (watcher: typeof changed) => {
        changed = watcher;
      },
      space: { pages: async function* () {} },
      readUses: () => read(),
    } as unknown as VaultSecrets;
    const index = new UseIndex(secrets, new FakeClock(), false);
    await index.within();
    changed(["app/key"]);
    read = async () => {
      index.clear(); // as a forced init does
      throw new VaultError("VAULT_LOCKED", "the vault is locked");
    };
    const outcome = await index.within().catch((error: unknown) => error);
    expect(outcome).to.be.instanceOf(VaultError).with.property("code", "VAULT_LOCKED");
  });
});
