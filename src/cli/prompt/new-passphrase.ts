/** New passphrase: typed twice, with an estimate of its strength; or read from a file or descriptor. */
import type { Bytes } from "../../../workers/protocol.js";
import { CommandFailure } from "../session/exit-codes.js";
import { mustConfirm } from "./confirm.js";
import { type PassphraseSource, readPassphrase } from "./passphrase.js";
import { type Estimate, loadEstimate } from "./strength.js";

const goodScore = 3;
const tries = 3;

/** Returns the passphrase, which the caller wipes. @throws CommandFailure usage, aborted */
export async function readNewPassphrase(source: PassphraseSource): Promise<Bytes> {
  const given = source.passphraseFile !== undefined || source.passphraseFd !== undefined || source.nonInteractive;
  if (given) return readPassphrase(source, "");
  const loading = loadEstimate();
  loading.catch(() => {}); // a cancelled prompt does not wait for it
  for (let left = tries - 1; ; left -= 1) {
    const typed = await typeTwice(source, loading);
    if (typed !== null) return typed;
    if (left === 0) throw new CommandFailure("usage", `the passphrases differ, ${tries} times: nothing was done`);
    process.stderr.write("the passphrases differ: type both again\n");
  }
}

/** Returns null when the two differ. */
async function typeTwice(source: PassphraseSource, loading: Promise<Estimate>): Promise<Bytes | null> {
  const first = await readPassphrase(source, "New passphrase: ");
  let same = false;
  try {
    await judge(await loading, first);
    same = await isRepeated(source, first);
    return same ? first : null;
  } finally {
    if (!same) first.fill(0);
  }
}

async function judge(estimate: Estimate, passphrase: Bytes): Promise<void> {
  const { score, text, advice } = estimate(passphrase);
  process.stderr.write(`strength: ${text}\n`);
  if (score >= goodScore) return;
  process.stderr.write(`${advice === "" ? "" : `${advice}\n`}Without this passphrase the vault cannot be opened.\n`);
  await mustConfirm("Use it anyway?", {});
}

async function isRepeated(source: PassphraseSource, first: Bytes): Promise<boolean> {
  const second = await readPassphrase(source, "Repeat passphrase: ");
  const same = Buffer.compare(first, second) === 0;
  second.fill(0);
  return same;
}
