/** `strongroom` without a command: the vault's state, and three commands for it. */
import type { Command } from "commander";
import { readOneSetting } from "../../config/settings.js";
import { readManifest } from "../../manifest.js";
import { namesServer, withClient } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { counted, printable, printRows } from "../kit/output.js";

export function define(command: Command, io: Io): void {
  command.description("Shows the vault's state and what to do next.").action(async () => {
    const { state, next } = (await serverState(io)) ?? withoutServer(io);
    const width = Math.max(...next.map(([name]) => name.length));
    const rows = next.map(([name, meaning]) => `  ${name.padEnd(width)}  ${meaning}\n`);
    printRows(io, `Strongroom ${readManifest().version}: ${state}\n\nnext:\n${rows.join("")}`);
  });
}

type Row = readonly [command: string, meaning: string];
type Overview = { readonly state: string; readonly next: readonly Row[] };

const help: Row = ["strongroom --help", "list the commands"];
const put: Row = ["strongroom put app/db/password", "store a secret"];

function withoutServer(io: Io): Overview {
  const home = printable(readOneSetting("home", undefined, io.env));
  return {
    state: `no server is running for the vault in ${home}`,
    next: [
      ["strongroom up", "start the server in the background"],
      ["strongroom service install", "start it at every login"],
      help,
    ],
  };
}

/** Returns null when no server runs on this machine. */
async function serverState(io: Io): Promise<Overview | null> {
  try {
    const status = await withClient(io, { autostart: false }, (client) => client.status());
    if (!status.initialized) return noVault;
    return status.locked ? locked : unlocked(status.secretCount);
  } catch (error) {
    const isDown = error instanceof CommandFailure && error.exit === "unreachable" && !namesServer(io, {});
    if (isDown) return null;
    throw error;
  }
}

const noVault: Overview = {
  state: "the server is running, and there is no vault yet",
  next: [["strongroom init", "create a vault"], put, ["strongroom get app/db/password", "print its value"]],
};

const locked: Overview = {
  state: "the vault is locked",
  next: [
    ["strongroom unlock", "unlock it with its passphrase"],
    ["strongroom status", "show when it was locked, and why"],
    help,
  ],
};

function unlocked(secretCount: number): Overview {
  const state = `the vault is unlocked and has ${counted(secretCount, "secret")}`;
  if (secretCount === 0)
    return { state, next: [put, ["strongroom import --prefix app .env", "store what a file has"], help] };
  return {
    state,
    next: [
      ["strongroom ls", "list the secrets"],
      ["strongroom lock", "lock the vault and wipe its key from memory"],
      help,
    ],
  };
}
