/** `strongroom up`: a server in the background, started unless one runs. */
import type { Command } from "commander";
import { StrongroomClient } from "../../client/client.js";
import { readSettings } from "../../config/settings.js";
import { homeAt } from "../../files/home.js";
import { findHolder } from "../../storage/files/claim.js";
import { givenSettings, warnOfUnknownVariables, withSettings } from "../kit/args/settings-flags.js";
import { startInBackground } from "../kit/connection/background-server.js";
import type { Io } from "../kit/io.js";
import { printable, report } from "../kit/output.js";

const details = `
The server runs in a session of its own, so that it survives the terminal; it
does not start again by itself (strongroom service install). Its log is
serve.log in the home. strongroom shutdown stops it. The flags are those of
strongroom serve. If a server runs already for this home, nothing is done.

With STRONGROOM_AUTOSTART=1 in the environment, or --autostart, every command
that finds no server for its home starts one so.`;

export function define(command: Command, io: Io): void {
  command.description("Starts the vault server in the background and returns once it listens.");
  withSettings(command)
    .addHelpText("after", details)
    .action(async () => {
      const { flags, problems } = givenSettings(command);
      const { home } = readSettings(flags, io.env, problems);
      const holder = await findHolder(homeAt(home).vault);
      if (holder !== null) return report(io, {}, {}, `a server is already running (pid ${holder.pid})`);
      warnOfUnknownVariables(io);
      const { pid, log, address } = await startInBackground(io, flags);
      const next = (await isInitialized(io, home)) ? "unlock" : "init";
      report(io, {}, {}, `the server runs in the background (pid ${pid}, ${address}; log: ${printable(log)})`);
      report(io, {}, {}, `next: strongroom ${next}`);
    });
}

async function isInitialized(io: Io, home: string): Promise<boolean> {
  const client = new StrongroomClient({ home, environment: io.env });
  try {
    return (await client.status()).initialized;
  } finally {
    await client.close();
  }
}
