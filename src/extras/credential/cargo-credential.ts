/** `cargo-credential-strongroom`: registry tokens for cargo, in its protocol of credential providers (version 1). */
import { createInterface } from "node:readline";
import type { Command } from "commander";
import { encodeSegment, eraseLogin, type Login, storePassword } from "../../cli/kit/connection/logins.js";
import { type ConnectionFlags, withClient, withConnection } from "../../cli/kit/connection/server.js";
import { CommandFailure } from "../../cli/kit/errors.js";
import { shellWord } from "../../cli/kit/hints.js";
import type { Io } from "../../cli/kit/io.js";
import { printable, withHints } from "../../cli/kit/output.js";
import { isObject, parseJsonObject, type UnknownObject } from "../../cli/kit/prompts/input.js";
import type { StrongroomClient } from "../../client/client.js";

type Flags = ConnectionFlags & { readonly cargoPlugin?: true };

const details = `
cargo runs it; set it up in ~/.cargo/config.toml:
  [registry]
  global-credential-providers = ["cargo-credential-strongroom"]
The token of a registry is the secret cargo/INDEX, INDEX its percent-encoded URL.`;

export function define(command: Command, io: Io): void {
  command
    .description("Gives cargo the tokens of its registries: cargo runs it.")
    .option("--cargo-plugin", "speak cargo's protocol")
    .addHelpText("after", details);
  withConnection(command).action((flags) => cargoCredential(io, flags));
}

async function cargoCredential(io: Io, flags: Flags): Promise<void> {
  if (!flags.cargoPlugin)
    throw new CommandFailure("usage", "cargo runs this program: see  strongroom cargo-credential --help");
  say(io, { v: [1] });
  for await (const line of createInterface({ input: io.stdin })) say(io, await answer(io, flags, line));
}

function say(io: Io, message: object): void {
  io.stdout.write(`${JSON.stringify(message)}\n`);
}

const notFound = { Err: { kind: "not-found" } };
const notSupported = { Err: { kind: "operation-not-supported" } };

/** Returns cargo's form of a result or an error. */
async function answer(io: Io, flags: Flags, line: string): Promise<object> {
  const request = parseJsonObject(line);
  const registry = request?.["registry"];
  const index = isObject(registry) ? registry["index-url"] : null;
  if (request === null || typeof index !== "string") return failure(io, "the request is not of cargo's protocol");
  if (request["v"] !== 1) return failure(io, "cargo speaks another version of its protocol");
  const secret = { path: `cargo/${encodeSegment(index)}`, user: index };
  try {
    return await withClient(io, { ...flags, nonInteractive: true }, (client) => act(io, client, request, secret));
  } catch (error) {
    if (error instanceof CommandFailure) return failure(io, error.message);
    throw error;
  }
}

async function act(io: Io, client: StrongroomClient, request: UnknownObject, secret: Login): Promise<object> {
  const { kind, token } = request;
  if (kind === "get") return get(io, client, secret.path);
  if (kind === "logout") {
    if ((await client.getOrUndefined(secret.path)) === undefined) return notFound;
    await eraseLogin(client, secret, null);
    return { Ok: { kind } };
  }
  if (kind !== "login") return notSupported;
  if (typeof token !== "string" || token === "")
    return failure(io, `no token was given: store it with  strongroom put ${shellWord(secret.path)}`);
  await storePassword(client, secret.path, Buffer.from(token), `token of cargo for ${secret.user}`);
  return { Ok: { kind } };
}

/** cargo keeps a token for its session, or until it expires. */
async function get(io: Io, client: StrongroomClient, path: string): Promise<object> {
  const secret = await client.getOrUndefined(path);
  if (secret === undefined) return notFound;
  const token = Buffer.from(secret.revealBytes()).toString().trimEnd();
  const answer = { kind: "get", token, operation_independent: true };
  const { expiresAt } = secret.metadata;
  if (expiresAt === undefined) return { Ok: { ...answer, cache: "session" } };
  const time = Date.parse(expiresAt);
  if (time <= io.clock.now()) return failure(io, `the token at ${printable(path)} has expired: store a new one`);
  return { Ok: { ...answer, cache: "expires", expiration: Math.floor(time / 1000) } };
}

function failure(io: Io, message: string): object {
  return { Err: { kind: "other", message: `strongroom: ${withHints(io, message)}`, "caused-by": [] } };
}
