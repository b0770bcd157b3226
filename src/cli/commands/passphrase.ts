/** `strongroom passphrase`. */
import { Argument, type Command, Option } from "commander";
import { integer } from "../../config/readers.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure, noVaultYet } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { type OutputFlags, report, withOutput } from "../kit/output.js";
import {
  type PassphraseSource,
  readNewPassphrase,
  withPassphrase,
  withRawPassphrase,
} from "../kit/prompts/passphrase.js";
import { readCheckedPassphrase } from "./check-passphrase.js";

type Flags = OutputFlags &
  ConnectionFlags &
  PassphraseSource & { readonly newPassphraseFile?: string; readonly newPassphraseFd?: number; readonly raw?: true };

export function define(command: Command, io: Io): void {
  const file = new Option("--new-passphrase-file <file>", "read the new passphrase from a file; - is standard input");
  const descriptor = new Option("--new-passphrase-fd <number>", "read the new passphrase from an open file descriptor");
  command
    .description(
      "Changes the passphrase of the vault, which stays locked or unlocked. The old one no longer unlocks it. If you " +
        "forgot the passphrase, type a key instead: strongroom key create  makes one.",
    )
    .usage("[flags]")
    .addArgument(new Argument("[action]").choices(["change"])) // its earlier spelling
    .addOption(file.conflicts("newPassphraseFd"))
    .addOption(descriptor.argParser(integer(0, 9_999_999)));
  withOutput(withConnection(withRawPassphrase(withPassphrase(command)))).action((_action, flags) =>
    change(io, _action, flags),
  );
}

async function change(io: Io, _action: string | undefined, flags: Flags): Promise<void> {
  if (flags.passphraseFile === "-" && flags.newPassphraseFile === "-") {
    throw new CommandFailure("usage", "both passphrases would come from standard input: put one into a file");
  }
  const { initialized } = await withClient(io, flags, (client) => client.status());
  if (!initialized) throw noVaultYet();
  const current = await readCheckedPassphrase(io, flags, "Passphrase of the vault, or a key: ");
  try {
    await replace(io, current, flags);
  } finally {
    current.fill(0);
  }
}

async function replace(io: Io, current: Uint8Array<ArrayBuffer>, flags: Flags): Promise<void> {
  const { newPassphraseFile: passphraseFile, newPassphraseFd: passphraseFd, nonInteractive, raw, quiet } = flags;
  const next = await readNewPassphrase(io, {
    ...(passphraseFile !== undefined && { passphraseFile }),
    ...(passphraseFd !== undefined && { passphraseFd }),
    ...(nonInteractive && { nonInteractive }),
    ...(raw && { raw }),
    ...(quiet && { quiet }),
  });
  try {
    const { message } = await withClient(io, flags, (client) => client.changePassphrase(current, next));
    report(io, flags, { message }, message);
  } finally {
    next.fill(0);
  }
}
