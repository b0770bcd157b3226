/** `terraform-credentials-strongroom`: tokens of hosts for Terraform and OpenTofu, in their protocol of credentials helpers. */
import { Argument, type Command } from "commander";
import {
  encodeSegment,
  eraseLogin,
  type Login,
  readHelperInput,
  readPassword,
  storePassword,
} from "../../cli/kit/connection/logins.js";
import { type ConnectionFlags, withClient, withConnection } from "../../cli/kit/connection/server.js";
import { CommandFailure } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { parseJsonObject } from "../../cli/kit/prompts/input.js";
import type { StrongroomClient } from "../../client/client.js";

const details = `
Terraform and OpenTofu run it; link it into ~/.terraform.d/plugins, and set it up
in ~/.terraformrc:
  credentials_helper "strongroom" {}
The token of a host is the secret terraform/HOST.`;

export function define(command: Command, io: Io): void {
  command
    .description("Gives Terraform and OpenTofu the tokens of hosts: they run it.")
    .addArgument(new Argument("<action>", "what they ask for").choices(["get", "store", "forget"]))
    .argument("<host>", "the host's name")
    .addHelpText("after", details);
  withConnection(command).action((action, host, flags) => terraformCredentials(io, action, host, flags));
}

async function terraformCredentials(io: Io, action: string, host: string, flags: ConnectionFlags): Promise<void> {
  const secret = { path: `terraform/${encodeSegment(host)}`, user: host };
  await withClient(io, { ...flags, nonInteractive: true }, async (client) => {
    if (action === "get") return get(io, client, secret);
    if (action === "forget") return forget(client, secret);
    await storePassword(client, secret.path, await readToken(io), `token of Terraform for ${host}`);
  });
}

/** A host without a token is an empty object. */
async function get(io: Io, client: StrongroomClient, secret: Login): Promise<void> {
  const value = await readPassword(client, secret);
  io.stdout.write(`${JSON.stringify(value === null ? {} : { token: value.toString().trimEnd() })}\n`);
  value?.fill(0);
}

/** There may be none. */
async function forget(client: StrongroomClient, secret: Login): Promise<void> {
  if ((await client.getOrUndefined(secret.path)) !== undefined) await eraseLogin(client, secret, null);
}

/** Other members than the token would be lost, and are refused. @throws CommandFailure usage */
async function readToken(io: Io): Promise<Buffer> {
  const input = await readHelperInput(io);
  const members = parseJsonObject(input.toString());
  input.fill(0);
  const { token, ...others } = members ?? {};
  if (typeof token === "string" && token !== "" && Object.keys(others).length === 0) return Buffer.from(token);
  throw new CommandFailure("usage", "the input must be a JSON object with token alone");
}
