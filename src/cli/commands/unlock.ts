/** `strongroom unlock`. */
import { type Command, Option } from "commander";
import type { Bytes } from "../../../workers/protocol.js";
import type { Acknowledgement } from "../../client/client.js";
import { type ConnectionFlags, unlockOnTerminal, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure, noVaultYet } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { type OutputFlags, report, withOutput } from "../kit/output.js";
import { findKeyring } from "../kit/programs/keyring.js";
import { type PassphraseSource, readPassphrase, withPassphrase } from "../kit/prompts/passphrase.js";
import { askKeyFromShares } from "../kit/prompts/shares.js";

type Flags = OutputFlags & ConnectionFlags & PassphraseSource & { readonly keyring?: true; readonly shares?: true };

export function define(command: Command, io: Io): void {
  const sources = ["passphraseFile", "passphraseFd"];
  command
    .description(
      "Unlocks the vault with its passphrase or a key: a key works wherever the passphrase does, also in " +
        "--passphrase-file. Does nothing if the vault is already unlocked.",
    )
    .addOption(new Option("--keyring", "use the key in the desktop's keyring").conflicts([...sources, "shares"]))
    .addOption(new Option("--shares", "prompt for key shares until the threshold is reached").conflicts(sources));
  withOutput(withConnection(withPassphrase(command))).action((flags) => unlock(io, flags));
}

async function unlock(io: Io, flags: Flags): Promise<void> {
  const { initialized, locked, vaultPath } = await withClient(io, flags, (client) => client.status());
  if (!initialized) throw noVaultYet();
  if (!locked) return report(io, flags, { changed: false }, "the vault is already unlocked");
  const { message } = await unlockBy(io, flags, vaultPath);
  report(io, flags, { changed: true }, message);
}

async function unlockBy(io: Io, flags: Flags, vaultPath: string): Promise<Acknowledgement> {
  if (flags.keyring) return unlockWith(io, await mustLookUp(io, vaultPath), flags);
  if (flags.shares) return unlockWith(io, await askKeyFromShares(io, flags.nonInteractive), flags);
  const typed = asks(flags) ? await withClient(io, flags, (client) => unlockOnTerminal(io, client)) : null;
  return typed ?? unlockWith(io, await readPassphrase(io, flags, "Passphrase of the vault: "), flags);
}

function asks({ passphraseFile, passphraseFd, nonInteractive }: Flags): boolean {
  return passphraseFile === undefined && passphraseFd === undefined && !nonInteractive;
}

async function mustLookUp(io: Io, vaultPath: string): Promise<Bytes> {
  const key = await findKeyring(io).lookup(vaultPath);
  if (key !== null) return key;
  const remedy = "unlock the keyring, or make one with  strongroom key create --keyring";
  throw new CommandFailure("wrongPassphrase", `the keyring has no key for ${vaultPath}: ${remedy}`);
}

/** Wipes the text. */
async function unlockWith(io: Io, passphrase: Bytes, flags: Flags): Promise<Acknowledgement> {
  try {
    return await withClient(io, flags, (client) => client.unlock(passphrase));
  } finally {
    passphrase.fill(0);
  }
}
