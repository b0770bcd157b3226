/** New passphrase: typed twice, with an estimate of its strength; or read from a file or descriptor. */
import type { Bytes } from "../../../workers/protocol.js";
import { CommandFailure } from "../session/exit-codes.js";
import { mustConfirm } from "./confirm.js";
import { type PassphraseSource, readPassphrase } from "./passphrase.js";
import { type Estimate, loadEstimate } from "./strength.js";

const goodScore = 3;

/** Returns the passphrase, which the caller wipes. @throws CommandFailure usage, aborted */
export async function readNewPassphrase(source: PassphraseSource): Promise<Bytes> {
  const given = source.passphraseFile !== undefined || source.passphraseFd !== undefined || source.nonInteractive;
  if (given) return readPassphrase(source, "");
  const loading = loadEstimate();
  loading.catch(() => {}); // a cancelled prompt does not wait for it
  const first = await readPassphrase(source, "New passphrase: ");
  try {
    await judge(await loading, first);
    await mustRepeat(source, first);
    return first;
  } catch (error) {
    first.fill(0);
    throw error;
  }
}

async function judge(estimate: Estimate, passphrase: Bytes): Promise<void> {
  const { score, text, advice } = estimate(passphrase);
  process.stderr.write(`strength: ${text}\n`);
  if (score >= goodScore) return;
  process.stderr.write(`${advice === "" ? "" : `${advice}\n`}Without this passphrase the vault cannot be opened.\n`);
  await mustConfirm("Use it anyway?", false);
}

async function mustRepeat(source: PassphraseSource, first: Bytes): Promise<void> {
  const second = await readPassphrase(source, "Repeat passphrase: ");
  const same = Buffer.compare(first, second) === 0;
  second.fill(0);
  if (!same) throw new CommandFailure("usage", "the passphrases differ: nothing was done");
}
