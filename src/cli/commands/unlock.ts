/** `strongroom unlock`. */
import type { Command } from "commander";
import { type PassphraseSource, readPassphrase, withPassphrase } from "../prompt/passphrase.js";
import { type ConnectionFlags, noVaultYet, withClient, withConnection } from "../session/connection.js";
import { type OutputFlags, report, withOutput } from "../session/output.js";

type Flags = OutputFlags & ConnectionFlags & PassphraseSource;

export function define(command: Command): void {
  command.description("Unlocks the vault with its passphrase. Does nothing if it is unlocked already.");
  withOutput(withConnection(withPassphrase(command))).action(unlock);
}

async function unlock(flags: Flags): Promise<void> {
  const { initialized, locked } = await withClient(flags, (client) => client.status());
  if (!initialized) throw noVaultYet();
  if (!locked) return report(flags, { changed: false }, "the vault is already unlocked");
  const passphrase = await readPassphrase(flags, "Passphrase of the vault: ");
  try {
    const { message } = await withClient(flags, (client) => client.unlock(passphrase));
    report(flags, { changed: true }, message);
  } finally {
    passphrase.fill(0);
  }
}
