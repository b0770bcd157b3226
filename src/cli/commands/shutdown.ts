/** Owns `strongroom shutdown`: ends once the server has ended. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import type { VaultStatus } from "../../client/client.js";
import { readOneSetting } from "../../config/settings.js";
import { homeAt } from "../../files/home.js";
import { findHolder } from "../../storage/files/claim-holder.js";
import { type ConnectionFlags, namesServer, withClient, withConnection } from "../session/connection.js";
import { CommandFailure } from "../session/exit-codes.js";
import { type OutputFlags, report, withOutput } from "../session/output.js";

type Flags = OutputFlags & ConnectionFlags;

/** The server lets what is under way end, for at most 5 s. */
const patienceMs = 15_000;

export function define(command: Command): void {
  command.description("Locks the vault and stops the server; ends once the server on this machine has ended.");
  withOutput(withConnection(command)).action(shutdown);
}

async function shutdown(flags: Flags): Promise<void> {
  const { vaultPath, port } = await tellServer(flags);
  await hasEnded(vaultPath, port);
  report(flags, {}, "the vault is locked and the server has stopped");
}

async function tellServer(flags: Flags): Promise<VaultStatus> {
  try {
    return await withClient(flags, async (client) => {
      const status = await client.status();
      await client.shutdown();
      return status;
    });
  } catch (error) {
    throw error instanceof CommandFailure && error.exit === "unreachable" ? await whyUnreachable(flags, error) : error;
  }
}

/** Nobody is to be told to start the server that they want to stop. */
async function whyUnreachable(flags: Flags, failure: CommandFailure): Promise<CommandFailure> {
  if (namesServer(flags)) return failure;
  const { vault } = homeAt(readOneSetting("home", flags.home, process.env));
  if ((await findHolder(vault)) !== null) return failure;
  return new CommandFailure("unreachable", `no server runs on ${vault}: there is nothing to stop`);
}

/** Somebody who starts the next server, or works on the files, has to wait for it. */
async function hasEnded(vaultPath: string, port: number): Promise<void> {
  const first = await findHolder(vaultPath);
  if (!first?.url?.endsWith(`:${port}`)) return; // it has ended, or ran on another machine
  for (let waitedMs = 0; ; waitedMs += 50) {
    if ((await findHolder(vaultPath))?.pid !== first.pid) return;
    if (waitedMs > patienceMs) {
      throw new CommandFailure("unexpected", `the server has been told to stop, and still runs (pid ${first.pid})`);
    }
    await sleep(50);
  }
}
