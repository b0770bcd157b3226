/** Stop of a server: returns once its vault can be used by the next one. */
import type { VaultStatus } from "../../../client/client.js";
import { readOneSetting } from "../../../config/settings.js";
import { homeAt } from "../../../files/home.js";
import { findHolder } from "../../../storage/files/claim.js";
import { CommandFailure } from "../errors.js";
import type { Io } from "../io.js";
import { type ConnectionFlags, namesServer, withClient } from "./server.js";

/** The server waits up to 5 s for running requests. */
const patienceMs = 15_000;

/** Locks the vault and stops the server; waits until one on this machine has exited. @throws CommandFailure */
export async function stopServer(io: Io, flags: ConnectionFlags): Promise<void> {
  const { vaultPath, port } = await requestStop(io, flags);
  // Until its process has ended, the next server cannot use the vault.
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

async function requestStop(io: Io, flags: ConnectionFlags): Promise<VaultStatus> {
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
async function explainUnreachable(io: Io, flags: ConnectionFlags, failure: CommandFailure): Promise<CommandFailure> {
  if (namesServer(io, flags)) return failure;
  const { vault } = homeAt(readOneSetting("home", flags.home, io.env));
  if ((await findHolder(vault)) !== null) return failure;
  return new CommandFailure("unreachable", `no server is running for ${vault}: nothing to stop`);
}
