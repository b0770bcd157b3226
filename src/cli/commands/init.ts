/** `strongroom init`. */
import type { Command } from "commander";
import type { Bytes } from "../../../workers/protocol.js";
import { onlyWith } from "../kit/args/args.js";
import { createKeyWith, keyAdvice } from "../kit/connection/create-key.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { counted, type OutputFlags, printable, printLine, report, say, withDryRun, withOutput } from "../kit/output.js";
import {
  type PassphraseSource,
  readNewPassphrase,
  withPassphrase,
  withRawPassphrase,
} from "../kit/prompts/passphrase.js";
import { confirm, mustConfirm, withYes } from "../kit/prompts/prompt.js";

type Flags = OutputFlags &
  ConnectionFlags &
  PassphraseSource & { readonly force?: true; readonly dryRun?: true; readonly raw?: true; readonly yes?: true };

export function define(command: Command, io: Io): void {
  command
    .description("Creates an empty vault with a passphrase of your choice, and unlocks it.")
    .option("--force", "create a new vault even if there is one; the old one is kept beside it");
  onlyWith(withYes(command), "yes", "force");
  withOutput(withConnection(withDryRun(withRawPassphrase(withPassphrase(command))))).action((flags) => init(io, flags));
}

async function init(io: Io, flags: Flags): Promise<void> {
  const { initialized, vaultPath, secretCount } = await withClient(io, flags, (client) => client.status());
  if (initialized && !flags.force) throw alreadyExists(vaultPath);
  if (initialized && !flags.dryRun) {
    const what = `the vault in ${printable(vaultPath)} (${counted(secretCount, "secret")})`;
    await mustConfirm(io, `Replace ${what} by an empty one? Its files are kept.`, flags);
  }
  const passphrase = await readNewPassphrase(io, flags);
  try {
    await make(io, passphrase, { vaultPath, replaced: initialized }, flags);
  } finally {
    passphrase.fill(0);
  }
}

type Plan = { readonly vaultPath: string; readonly replaced: boolean };

async function make(io: Io, passphrase: Bytes, plan: Plan, flags: Flags): Promise<void> {
  if (flags.dryRun) {
    const old = plan.replaced ? ", and the old one kept beside it" : "";
    const text = `a vault would be created in ${plan.vaultPath}${old}: nothing was done`;
    return report(io, flags, { dryRun: true, ...plan }, text);
  }
  const made = await withClient(io, flags, (client) => client.init(passphrase, { force: flags.force }));
  report(io, flags, { vaultPath: made.vaultPath, message: made.message }, `${made.message} (${made.vaultPath})`);
  if (isTyped(flags)) await offerRecoveryKey(io, passphrase, flags);
}

function isTyped({ passphraseFile, passphraseFd, nonInteractive, json, quiet }: Flags): boolean {
  return passphraseFile === undefined && passphraseFd === undefined && !nonInteractive && !json && !quiet;
}

/** The vault is there already: a no, or Ctrl-C, is no failure. */
async function offerRecoveryKey(io: Io, passphrase: Bytes, flags: Flags): Promise<void> {
  const question = "Create a recovery key, in case you forget the passphrase?";
  if (!(await confirm(io, question).catch(() => false))) return;
  await createKeyWith(io, passphrase, flags, "recovery", async ({ key }) => printLine(io, key));
  say(io, keyAdvice);
}

function alreadyExists(vaultPath: string): CommandFailure {
  const remedy =
    "unlock it with  strongroom unlock  or create a new one with --force, which keeps the old one beside it";
  return new CommandFailure("conflict", `${vaultPath} already has a vault: ${remedy}`);
}
