/** `strongroom shutdown`: returns once the server has exited. */
import type { Command } from "commander";
import { type ConnectionFlags, withConnection } from "../kit/connection/server.js";
import { stopServer } from "../kit/connection/stop-server.js";
import type { Io } from "../kit/io.js";
import { type OutputFlags, report, withOutput } from "../kit/output.js";

type Flags = OutputFlags & ConnectionFlags;

export function define(command: Command, io: Io): void {
  command.description("Locks the vault and stops the server; waits until a server on this machine has exited.");
  withOutput(withConnection(command)).action((flags) => shutdown(io, flags));
}

async function shutdown(io: Io, flags: Flags): Promise<void> {
  await stopServer(io, flags);
  report(io, flags, {}, "the vault is locked and the server has stopped");
}
