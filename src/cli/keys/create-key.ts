/** Creation of a key, and its removal when its text could not be delivered: it would open the vault, and no one has it. */
import type { CreatedKey, Text } from "../../client/client.js";
import { type PassphraseSource, readPassphrase } from "../prompt/passphrase.js";
import { type ConnectionFlags, withClient } from "../session/connection.js";

/** Shows or stores the key's text. */
export type Deliver = (created: CreatedKey) => Promise<void>;

export const keyAdvice =
  "This key opens the vault and is not shown again: keep it where you will find it without the passphrase.\n";

/** Asks for the passphrase. @throws CommandFailure */
export async function createKey(
  flags: ConnectionFlags & PassphraseSource,
  label: string,
  deliver: Deliver,
): Promise<void> {
  const passphrase = await readPassphrase(flags, "Passphrase of the vault: ");
  await createKeyWith(passphrase, flags, label, deliver).finally(() => passphrase.fill(0));
}

/** @throws CommandFailure */
export async function createKeyWith(
  passphrase: Text,
  flags: ConnectionFlags,
  label: string,
  deliver: Deliver,
): Promise<void> {
  await withClient(flags, async (client) => {
    const created = await client.createKey(passphrase, label);
    try {
      await deliver(created);
    } catch (error) {
      await client.deleteKey(created.id).catch(() => {}); // a locked vault keeps it, and `key ls` shows it
      throw error;
    }
  });
}
