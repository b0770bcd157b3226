/** Check of the vault's present passphrase before a command asks for anything else. */
import type { Bytes } from "../../../workers/protocol.js";
import { readOneSetting } from "../../config/settings.js";
import { engineFor } from "../../engines/engines.js";
import { VaultError } from "../../errors.js";
import { withOfflineJudge } from "../../maintenance/offline-keys.js";
import { storeSettings } from "../kit/args/settings-flags.js";
import { type ConnectionFlags, namesServer, withClient } from "../kit/connection/server.js";
import { failureOfVault } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { isTyped, type PassphraseSource, withPassphraseTries } from "../kit/prompts/passphrase.js";

/** Returns the passphrase, for the caller to wipe. A typed one is checked, and asked for up to three times. @throws CommandFailure */
export function readCheckedPassphrase(
  io: Io,
  flags: ConnectionFlags & PassphraseSource,
  question: string,
): Promise<Bytes> {
  return withPassphraseTries(io, flags, question, async (passphrase) => {
    if (isTyped(flags)) await check(io, flags, passphrase);
    return passphrase.slice();
  });
}

/** The server of an unlocked vault checks it. A locked one would unlock: the home's header is read instead, where there is one. */
async function check(io: Io, flags: ConnectionFlags, passphrase: Bytes): Promise<void> {
  const quiet = { ...flags, nonInteractive: true } as const;
  const { locked } = await withClient(io, quiet, (client) => client.status());
  if (!locked) return void (await withClient(io, quiet, (client) => client.unlock(passphrase)));
  if (!namesServer(io, flags)) await checkOffline(io, flags.home, passphrase);
}

/** Derives the key from the header of the home's vault. @throws CommandFailure wrongPassphrase */
export async function checkOffline(io: Io, given: string | undefined, passphrase: Bytes): Promise<void> {
  const home = readOneSetting("home", given, io.env);
  const { store, storePasswordFile } = await storeSettings(io, home, {});
  const place = store ?? home;
  const header = await (await engineFor(place)).header(place, storePasswordFile);
  if (header === null) return;
  try {
    await withOfflineJudge(header, passphrase.slice(), async () => {});
  } catch (error) {
    throw error instanceof VaultError ? failureOfVault(error) : error;
  }
}
