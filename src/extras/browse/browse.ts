/**
 * `strongroom browse`: the vault in the terminal, to search, reveal, copy, edit and restore secrets.
 * It draws on the alternate screen and erases it when it is left, so that no value stays in the scrollback.
 * Commands of this program, each in its own process, read and change values; `pick` is its form for menus.
 */
import { type Command, Option } from "commander";
import { duration } from "../../cli/kit/args/args.js";
import { folderPrefix } from "../../cli/kit/args/paths.js";
import { type ConnectionFlags, unlockOnTerminal, withClient, withConnection } from "../../cli/kit/connection/server.js";
import type { Io } from "../../cli/kit/io.js";
import { painter } from "../../cli/kit/output.js";
import { OwnCommands } from "../../cli/kit/programs/own-commands.js";
import { type SecretList, type StrongroomClient, StrongroomError } from "../../client/client.js";
import { Browser } from "./browser.js";
import { firstPage } from "./catalog.js";
import { mustHaveScreen, terminalMode } from "./screen.js";

type Flags = ConnectionFlags & { readonly reveal: number };

const details = `
keys:
  /                search paths and descriptions as you type; Esc shows all
  arrows, j, k     move; PgUp, PgDn, Home and End too
  r                reveal the value until the next key, for 10 seconds at most
  c                copy the value to the clipboard for 45 seconds
  o, O             show or copy the one-time code
  v or Enter       versions, and what each changed of the metadata
  u                undo the last change, or restore the selected version
  e, n, g          edit, new secret, generate a value
  d, t             move to the trash, show the trash
  R                load the list again
  Ctrl-Z           suspend; the screen is cleared first
  L, q             lock the vault and quit, or only quit

Values are shown on the alternate screen only, and erased when it is left: none
stays in the terminal or its scrollback.`;

export function define(command: Command, io: Io): void {
  const reveal = new Option("--reveal <duration>", "how long a value is shown at most, such as 5s");
  command
    .description("Shows the vault in the terminal: search, reveal, copy, edit and restore secrets.")
    .argument("[folder]", "only what is in this folder")
    .addOption(reveal.argParser(duration(600_000)).default(10_000, "10s"))
    .addHelpText("after", details);
  withConnection(command).action((folder, flags) => browse(io, folder, flags));
}

async function browse(io: Io, folder = "", flags: Flags): Promise<void> {
  mustHaveScreen(io, "strongroom ls and strongroom get work without one");
  const prefix = folderPrefix(folder);
  const farewell = await withClient(io, { ...flags, quiet: true }, async (client) => {
    const [first, mode] = await Promise.all([firstList(io, client, prefix), terminalMode(io)]);
    const [commands, paint] = [new OwnCommands(io, flags), painter(io)];
    return new Browser(io, { client, commands, paint, prefix, first, mode, revealMs: flags.reveal }).run();
  });
  if (farewell !== null) io.stdout.write(`${farewell}\n`);
}

/** The client asks for no passphrase by itself, since the screen would be in the way later. */
async function firstList(io: Io, client: StrongroomClient, prefix: string): Promise<SecretList> {
  try {
    return await client.list({ prefix, limit: firstPage });
  } catch (error) {
    const isLocked = error instanceof StrongroomError && error.code === "VAULT_LOCKED";
    if (!isLocked || !(await client.status()).initialized) throw error;
    await unlockOnTerminal(io, client, "the vault is locked\nPassphrase of the vault: ");
    return client.list({ prefix, limit: firstPage });
  }
}
