/** `strongroom vault-env`: the environment of a client of HashiCorp Vault or OpenBao, for this server. */
import { resolve } from "node:path";
import type { Command } from "commander";
import { findServer, mustHaveToken } from "../../client/discovery.js";
import { quoted } from "../../files/home.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { type OutputFlags, printJson, withResult } from "../kit/output.js";

type Flags = ConnectionFlags & OutputFlags;

const details = `
Prints what a shell needs so that vault, bao, and every program that takes their
variables, use this server:
  eval "$(strongroom vault-env)"
  vault kv get secret/app/db

The output has the token of this command: the root token, unless --token-file,
STRONGROOM_TOKEN or STRONGROOM_TOKEN_FILE names another one. Give programs a
client token (strongroom token create). The server needs --vault-port.`;

export function define(command: Command, io: Io): void {
  command
    .description("Prints the address, certificate and token for clients of Vault and OpenBao.")
    .addHelpText("after", details);
  withConnection(withResult(command)).action((flags) => vaultEnv(io, flags));
}

async function vaultEnv(io: Io, flags: Flags): Promise<void> {
  const { vaultPort } = await withClient(io, flags, (client) => client.status());
  if (vaultPort === undefined) {
    throw new CommandFailure(
      "usage",
      "the port for Vault's clients is off: start the server with --vault-port 8200 (STRONGROOM_VAULT_PORT)",
    );
  }
  const variables = await withClient(io, flags, () => variablesFor(io, flags, vaultPort));
  if (flags.json) return printJson(io, Object.fromEntries(variables));
  io.stdout.write(variables.map(([name, value]) => `export ${name}=${forShell(value)}\n`).join(""));
}

/** OpenBao's programs take both prefixes, and prefer their own. */
async function variablesFor(
  { env: environment }: Io,
  flags: Flags,
  port: number,
): Promise<readonly (readonly [string, string])[]> {
  const { home, address: named, tokenFile, cacert: certificateFile } = flags;
  const found = await findServer({ home, address: named, tokenFile, certificateFile, environment });
  const address = new URL(found.address);
  address.port = String(port);
  const values = { ADDR: address.origin, CACERT: resolve(found.certificateSource), TOKEN: mustHaveToken(found) };
  return ["VAULT", "BAO"].flatMap((prefix) => {
    return Object.entries(values).map(([name, value]) => [`${prefix}_${name}`, value] as const);
  });
}

/** An address needs no quotes. */
function forShell(value: string): string {
  return /^https:[\w./:-]+$/.test(value) ? value : quoted(value);
}
