/** `strongroom shutdown`: returns once the server has exited. */
import type { Command } from "commander";
import type { VaultStatus } from "../../client/client.js";
import { readOneSetting } from "../../config/settings.js";
import { homeAt } from "../../files/home.js";
import { findHolder } from "../../storage/files/claim.js";
import { type ConnectionFlags, namesServer, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { type OutputFlags, report, withOutput } from "../kit/output.js";

type Flags = OutputFlags & ConnectionFlags;

/** The server waits up to 5 s for running requests. */
const patienceMs = 15_000;

export function define(command: Command, io: Io): void {
  command.description("Locks the vault and stops the server; waits until a server on this machine has exited.");
  withOutput(withConnection(command)).action((flags) => shutdown(io, flags));
}

async function shutdown(io: Io, flags: Flags): Promise<void> {
  const { vaultPath, port } = await requestStop(io, flags);
  await waitForExit(io, vaultPath, port);
  report(io, flags, {}, "the vault is locked and the server has stopped");
}

async function requestStop(io: Io, flags: Flags): Promise<VaultStatus> {
  try {
    return await withClient(io, { ...flags, autostart: false }, async (client) => {
      const status = await client.status();
      await client.shutdown();
      return status;
    });
  } catch (error) {
    throw error instanceof CommandFailure && error.exit === "unreachable"
      ? await explainUnreachable(io, flags, error)
      : error;
  }
}

/** The usual advice, to start a server, would be wrong here. */
async function explainUnreachable(io: Io, flags: Flags, failure: CommandFailure): Promise<CommandFailure> {
  if (namesServer(io, flags)) return failure;
  const { vault } = homeAt(readOneSetting("home", flags.home, io.env));
  if ((await findHolder(vault)) !== null) return failure;
  return new CommandFailure("unreachable", `no server is running for ${vault}: nothing to stop`);
}

/** Waits until the vault can be used by the next server. */
async function waitForExit(io: Io, vaultPath: string, port: number): Promise<void> {
  const first = await findHolder(vaultPath);
  if (!first?.url?.endsWith(`:${port}`)) return; // it has exited, or runs on another machine
  for (let waitedMs = 0; ; waitedMs += 50) {
    if ((await findHolder(vaultPath))?.pid !== first.pid) return;
    if (waitedMs > patienceMs) {
      throw new CommandFailure("unexpected", `the server was told to stop but is still running (pid ${first.pid})`);
    }
    await io.sleep(50);
  }
}
