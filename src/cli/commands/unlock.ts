/** `strongroom unlock`. */
import type { Command } from "commander";
import type { Acknowledgement } from "../../client/client.js";
import { type PassphraseSource, readPassphrase, withPassphrase } from "../prompt/passphrase.js";
import { unlockOnTerminal } from "../prompt/unlocking-client.js";
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
  const typed = asks(flags) ? await withClient(flags, (client) => unlockOnTerminal(client)) : null;
  const { message } = typed ?? (await unlockFromSource(flags));
  report(flags, { changed: true }, message);
}

function asks({ passphraseFile, passphraseFd, nonInteractive }: Flags): boolean {
  return passphraseFile === undefined && passphraseFd === undefined && !nonInteractive;
}

async function unlockFromSource(flags: Flags): Promise<Acknowledgement> {
  const passphrase = await readPassphrase(flags, "Passphrase of the vault: ");
  try {
    return await withClient(flags, (client) => client.unlock(passphrase));
  } finally {
    passphrase.fill(0);
  }
}
