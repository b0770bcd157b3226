/** `strongroom lock`. */
import type { Command } from "commander";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { noVaultYet } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { type OutputFlags, report, withOutput } from "../kit/output.js";

type Flags = OutputFlags & ConnectionFlags;

export function define(command: Command, io: Io): void {
  command.description("Locks the vault. The master key is wiped from the server's memory before the command returns.");
  withOutput(withConnection(command)).action(async (flags: Flags) => {
    const { message } = await withClient(io, flags, async (client) => {
      if (!(await client.status()).initialized) throw noVaultYet();
      return client.lock();
    });
    report(io, flags, {}, message);
  });
}
