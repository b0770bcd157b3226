/**
 * `strongroom podman-secret`: keeps podman's secrets in the vault, for the driver `shell`.
 * podman runs it with an id in SECRET_ID, and passes values through standard input and output.
 * One secret of podman is the secret podman/SECRET_ID.
 */
import { isUtf8 } from "node:buffer";
import { Argument, type Command } from "commander";
import {
  decodeSegment,
  encodeSegment,
  eraseLogin,
  loginsIn,
  readHelperInput,
  readPassword,
} from "../../cli/kit/connection/logins.js";
import { type ConnectionFlags, withClient, withConnection } from "../../cli/kit/connection/server.js";
import { CommandFailure } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { printable, withHints } from "../../cli/kit/output.js";
import type { StrongroomClient } from "../../client/client.js";

type Flags = ConnectionFlags & { readonly config?: true };

const actions = ["list", "lookup", "store", "delete"] as const;
const folder = "podman/";

/** Returns the part of containers.conf (TOML, whose strings have JSON's escapes) that sets it up. */
function configText(io: Io): string {
  const commands = actions.map((action) => {
    return `${action} = ${JSON.stringify(withHints(io, `strongroom podman-secret ${action}`))}\n`;
  });
  return `[secrets]\ndriver = "shell"\n\n[secrets.opts]\n${commands.join("")}`;
}

const details = `
Set it up once:
  strongroom podman-secret --config >> ~/.config/containers/containers.conf
Then podman secret create stores the value in the vault, and podman run --secret
reads it there. What podman deletes goes to the trash.`;

export function define(command: Command, io: Io): void {
  command
    .description("Keeps podman's secrets in the vault: podman runs it as its shell driver.")
    .addArgument(new Argument("[action]", "what podman asks for").choices(actions))
    .option("--config", "print the part of containers.conf that sets it up")
    .addHelpText("after", details);
  withConnection(command).action((action, flags) => podmanSecret(io, action, flags));
}

async function podmanSecret(io: Io, action: string | undefined, flags: Flags): Promise<void> {
  if (flags.config) return void io.stdout.write(configText(io));
  if (action === undefined) throw new CommandFailure("usage", `name what to do: ${actions.join(", ")} or --config`);
  await withClient(io, { ...flags, nonInteractive: true }, (client) =>
    action === "list" ? list(io, client) : one(io, client, action, secretId(io)),
  );
}

async function list(io: Io, client: StrongroomClient): Promise<void> {
  for (const { user } of await loginsIn(client, folder, null)) io.stdout.write(`${user}\n`);
}

async function one(io: Io, client: StrongroomClient, action: string, id: string): Promise<void> {
  const secret = { path: folder + encodeSegment(id), user: id };
  if (action === "delete") return eraseLogin(client, secret, null);
  if (action === "store") {
    const value = await readHelperInput(io);
    const kept = { type: "other", description: "secret of podman" } as const;
    const stored = isUtf8(value) ? client.put(secret.path, value, kept) : client.putBytes(secret.path, value, kept);
    await stored.finally(() => value.fill(0));
    return;
  }
  const value = await readPassword(client, secret);
  if (value === null) throw new CommandFailure("notFound", `there is no secret at ${printable(secret.path)}`);
  await new Promise<void>((written) => io.stdout.write(value, () => written()));
  value.fill(0);
}

/** @throws CommandFailure usage */
function secretId(io: Io): string {
  const id = io.env["SECRET_ID"] ?? "";
  if (id !== "" && decodeSegment(encodeSegment(id)) === id) return id;
  throw new CommandFailure("usage", "SECRET_ID is not set: podman runs this command, and sets it");
}
