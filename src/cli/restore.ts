/** Owns `strongroom restore`: into which home, and what is printed. */
import type { Command } from "commander";
import { restore as restoreVault } from "../backup/restore.js";
import { readOneSetting } from "../config/settings.js";
import { Keys } from "../doctor/keys.js";
import { openHome } from "../server/home.js";
import { told } from "./backup.js";
import { withHome } from "./connection.js";
import { type OutputFlags, printable, printJson, withOutput } from "./output.js";

type Flags = OutputFlags & { readonly home?: string };

export function define(command: Command): void {
  command
    .description(
      "Makes a backup the vault of a home that has none; it opens with the passphrase of the time of the backup. A home\n" +
        "with a vault is left alone, and so is one whose server runs. Every checksum is compared before anything counts.",
    )
    .argument("<file>", "the tar file that strongroom backup made");
  withOutput(withHome(command)).action(restore);
}

async function restore(file: string, flags: Flags): Promise<void> {
  const home = await openHome(readOneSetting("home", flags.home, process.env));
  const keys = new Keys(null);
  try {
    const understood = (header: Uint8Array<ArrayBuffer>) => keys.understands(header);
    const secrets = await told("restoring", (tick) => restoreVault(file, home.vault, understood, tick));
    if (flags.json) printJson({ ok: true, vaultPath: home.vault, secrets });
    else if (!flags.quiet) process.stdout.write(textFor(secrets, home.path));
  } finally {
    await keys.stop();
  }
}

function textFor(secrets: number, home: string): string {
  return `${secrets} secrets restored into ${printable(home)}: start the server there and unlock it\n`;
}
