/** Owns `strongroom init`. */
import type { Command } from "commander";
import type { Bytes } from "../../../workers/protocol.js";
import { readNewPassphrase } from "../prompt/new-passphrase.js";
import { type PassphraseSource, withPassphrase } from "../prompt/passphrase.js";
import { type ConnectionFlags, withClient, withConnection } from "../session/connection.js";
import { CommandFailure } from "../session/exit-codes.js";
import { type OutputFlags, report, withDryRun, withOutput } from "../session/output.js";

type Flags = OutputFlags & ConnectionFlags & PassphraseSource & { readonly force?: true; readonly dryRun?: true };

export function define(command: Command): void {
  command
    .description("Makes a new, empty vault under a passphrase of your choice, and unlocks it.")
    .option("--force", "make a new vault although there is one; the old one is kept, whole, beside it");
  withOutput(withConnection(withDryRun(withPassphrase(command)))).action(init);
}

async function init(flags: Flags): Promise<void> {
  const { initialized, vaultPath } = await withClient(flags, (client) => client.status());
  if (initialized && !flags.force) throw isThere(vaultPath);
  const passphrase = await readNewPassphrase(flags);
  try {
    await make(passphrase, { vaultPath, replaced: initialized }, flags);
  } finally {
    passphrase.fill(0);
  }
}

type Plan = { readonly vaultPath: string; readonly replaced: boolean };

async function make(passphrase: Bytes, plan: Plan, flags: Flags): Promise<void> {
  if (flags.dryRun) {
    const old = plan.replaced ? ", and the old one set aside beside it" : "";
    const text = `a vault would be made in ${plan.vaultPath}${old}: nothing was done`;
    return report(flags, { dryRun: true, ...plan }, text);
  }
  const made = await withClient(flags, (client) => client.init(passphrase, { force: flags.force }));
  report(flags, { vaultPath: made.vaultPath, message: made.message }, `${made.message} (${made.vaultPath})`);
}

function isThere(vaultPath: string): CommandFailure {
  const remedy = "open it with  strongroom unlock  or make a new one with --force, which keeps the old one beside it";
  return new CommandFailure("conflict", `there is a vault in ${vaultPath} already: ${remedy}`);
}
