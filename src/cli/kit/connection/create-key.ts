/** Creation of a key, and its deletion when it could not be shown or stored: it would unlock the vault without an owner. */
import { type CreatedKey, StrongroomError, type Text } from "../../../client/client.js";
import { CommandFailure } from "../errors.js";
import { shellWord } from "../hints.js";
import type { Io } from "../io.js";
import { printable } from "../output.js";
import { type PassphraseSource, withPassphraseTries } from "../prompts/passphrase.js";
import { type ConnectionFlags, withClient } from "./server.js";

/** Shows or stores the key. */
type Deliver = (created: CreatedKey) => Promise<void>;

export const keyAdvice =
  "This key unlocks the vault and is not shown again: keep it where you will find it without the passphrase.\n";

/** Asks for the passphrase. @throws CommandFailure */
export async function createKey(
  io: Io,
  flags: ConnectionFlags & PassphraseSource,
  label: string,
  deliver: Deliver,
): Promise<void> {
  await withPassphraseTries(io, flags, "Passphrase of the vault: ", (passphrase) =>
    createKeyWith(io, passphrase, flags, label, deliver),
  );
}

/** @throws CommandFailure */
export async function createKeyWith(
  io: Io,
  passphrase: Text,
  flags: ConnectionFlags,
  label: string,
  deliver: Deliver,
): Promise<void> {
  await withClient(io, flags, async (client) => {
    const created = await client.createKey(passphrase, label).catch((error) => refuseTaken(error, label));
    try {
      await deliver(created);
    } catch (error) {
      await client.deleteKey(created.id).catch(() => {}); // a locked vault keeps it, and `key ls` shows it
      throw error;
    }
  });
}

function refuseTaken(error: unknown, label: string): never {
  if (!(error instanceof StrongroomError) || error.code !== "ALREADY_EXISTS") throw error;
  const name = printable(label);
  const remedy = `choose another with --label, or delete it with  strongroom key rm ${shellWord(label)}`;
  throw new CommandFailure("conflict", `a key named "${name}" already exists: ${remedy}`);
}
