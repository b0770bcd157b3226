/** `strongroom rotate-key`. */
import { type Command, InvalidArgumentError } from "commander";
import type { Bytes } from "../../../workers/protocol.js";
import type { Rotated, StrongroomClient } from "../../client/client.js";
import { RepeatableOption } from "../kit/args/args.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure, noVaultYet } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { progressBar } from "../kit/output/progress.js";
import { type OutputFlags, printable, report, withOutput } from "../kit/output.js";
import {
  keyProblem,
  type PassphraseSource,
  readPassphraseFile,
  tries,
  triesLeft,
  withPassphrase,
} from "../kit/prompts/passphrase.js";
import { askHidden, mustConfirm, withYes } from "../kit/prompts/prompt.js";
import { readCheckedPassphrase } from "./check-passphrase.js";

type Flags = OutputFlags &
  ConnectionFlags &
  PassphraseSource & { readonly keep?: ReadonlyMap<string, string>; readonly yes?: true; readonly wait: boolean };

const pollMs = 200;

export function define(command: Command, io: Io): void {
  const keep = new RepeatableOption(
    "--keep <label=file>",
    "a key to keep, and the file that holds it; may be repeated",
  );
  command
    .description(
      "Creates a new master key and re-seals all secrets while they stay in use. A key keeps working only if you " +
        "give it here; all others are dropped. The passphrase stays: change it as well if it was stolen.",
    )
    .addOption(keep.argParser(labelAndFile))
    .option("--no-wait", "do not wait until all secrets are re-sealed");
  withOutput(withConnection(withPassphrase(withYes(command)))).action((flags) => rotateKey(io, flags));
}

function labelAndFile(text: string, before?: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const at = text.lastIndexOf("=");
  if (at < 1 || at === text.length - 1) throw new InvalidArgumentError("must be LABEL=FILE");
  return new Map([...(before ?? []), [text.slice(0, at), text.slice(at + 1)]]);
}

async function rotateKey(io: Io, flags: Flags): Promise<void> {
  const { initialized } = await withClient(io, flags, (client) => client.status());
  if (!initialized) throw noVaultYet();
  const { keys } = await withClient(io, flags, (client) => client.keys());
  const labels = keys.filter(({ kind }) => kind === "key").map(({ label }) => label);
  const passphrase = await readCheckedPassphrase(io, flags, "Passphrase of the vault: ");
  const kept = new Map<string, Bytes>();
  try {
    await collectKeys(io, labels, flags, kept);
    await confirmDropped(io, labels, kept, flags);
    const rotated = await withClient(io, flags, (client) => client.rotate(passphrase, [...kept.values()]));
    await finish(io, rotated, flags);
  } finally {
    for (const secret of [passphrase, ...kept.values()]) secret.fill(0);
  }
}

/** Reads the keys from the files of `--keep`; else, on a terminal, asks for each key. */
async function collectKeys(io: Io, labels: readonly string[], flags: Flags, kept: Map<string, Bytes>): Promise<void> {
  const missing = [...(flags.keep?.keys() ?? [])].find((label) => !labels.includes(label));
  if (missing !== undefined) throw new CommandFailure("notFound", `no key named "${printable(missing)}"`);
  for (const label of labels) {
    const keyFile = flags.keep?.get(label);
    const key =
      keyFile === undefined
        ? await typedKey(io, label, flags)
        : await readPassphraseFile(keyFile, `the file of --keep ${printable(label)}`);
    if (key !== null) kept.set(label, key);
  }
}

/** Returns null for a key that is not kept. @throws CommandFailure for a mistyped key */
async function typedKey(io: Io, label: string, flags: Flags): Promise<Bytes | null> {
  if (flags.keep !== undefined || flags.yes || flags.nonInteractive) return null;
  const question = `Key "${printable(label)}" (Enter alone drops it): `;
  let text = question;
  for (let left = tries - 1; ; left -= 1) {
    const rest = { limit: 1024, trailingInput: "a key is one line: type one at a time" };
    const typed = await askHidden(io, { text, discardsEarly: text !== question, ...rest });
    if (typed === null || typed.length === 0) return null;
    const problem = keyProblem(typed);
    if (problem === null) return typed;
    typed.fill(0);
    if (left === 0) throw new CommandFailure("wrongPassphrase", problem);
    text = `${problem}, ${triesLeft(left)}\n${question}`;
  }
}

async function confirmDropped(
  io: Io,
  labels: readonly string[],
  kept: ReadonlyMap<string, Bytes>,
  flags: Flags,
): Promise<void> {
  const dropped = labels.filter((label) => !kept.has(label)).map((label) => `"${printable(label)}"`);
  const what =
    dropped.length === 0 ? "All keys are kept." : `These keys will no longer unlock the vault: ${dropped.join(", ")}.`;
  await mustConfirm(io, `${what} Rotate the master key?`, flags);
}

async function finish(io: Io, { message, removed }: Rotated, flags: Flags): Promise<void> {
  const isDone = flags.wait && (await withClient(io, flags, (client) => waitUntilSealed(io, client)));
  const dropped = removed.length === 0 ? "" : `; dropped: ${removed.join(", ")}`;
  const text = isDone ? "the master key is rotated; all secrets are sealed under the new one" : message;
  report(io, flags, { message: text, removed, done: isDone }, `${text}${dropped}`);
}

/** Returns false when the vault is locked: the rest follows once it is unlocked. */
async function waitUntilSealed(io: Io, client: StrongroomClient): Promise<boolean> {
  const progress = progressBar(io, "re-sealing");
  try {
    for (;;) {
      const { rotation, locked } = await client.status();
      if (rotation === undefined) return true;
      if (locked) return false;
      progress.show(rotation.done, rotation.total);
      await io.sleep(pollMs);
    }
  } finally {
    progress.end();
  }
}
