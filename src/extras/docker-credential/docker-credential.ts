/**
 * `strongroom docker-credential`: keeps docker's logins of registries in the vault.
 * It speaks docker's protocol of credential helpers on standard input and output; podman and skopeo use it too.
 * One secret is one user of one registry.
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
  storePassword,
} from "../../cli/kit/connection/logins.js";
import { type ConnectionFlags, withClient, withConnection } from "../../cli/kit/connection/server.js";
import { CommandFailure } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { printable, withHints } from "../../cli/kit/output.js";
import { parseJsonObject } from "../../cli/kit/prompts/input.js";
import type { StrongroomClient } from "../../client/client.js";

const details = `
docker and podman run it; set it up in ~/.docker/config.json:
  { "credsStore": "strongroom" }
The password of USER at a registry is the secret docker/REGISTRY/USER. What
docker erases goes to the trash.`;

const folder = "docker/";

/** docker knows it by this text, on standard output. */
const notFound = "credentials not found in native keychain\n";

/** Errors that docker recognizes by their text. */
const [noRegistry, noUser] = ["no credentials server URL", "no credentials username"];

export function define(command: Command, io: Io): void {
  command
    .description("Gives docker the logins of its registries, and stores new ones.")
    .addArgument(new Argument("<action>", "what docker asks for").choices(["get", "store", "erase", "list"]))
    .addHelpText("after", details);
  withConnection(command).action((action, flags) => dockerCredential(io, action, flags));
}

/** docker shows standard output alone as the reason of a failure. */
async function dockerCredential(io: Io, action: string, flags: ConnectionFlags): Promise<void> {
  try {
    await withClient(io, { ...flags, nonInteractive: true }, async (client) => {
      if (action === "list") return list(io, client);
      const input = await readHelperInput(io);
      try {
        if (action === "store") await store(client, input);
        else if (action === "get") await get(io, client, input.toString().trim());
        else await erase(client, input.toString().trim());
      } finally {
        input.fill(0);
      }
    });
  } catch (error) {
    if (error instanceof CommandFailure) io.stdout.write(`${withHints(io, error.message)}\n`);
    throw error;
  }
}

async function get(io: Io, client: StrongroomClient, registry: string): Promise<void> {
  const [login, another] = await loginsIn(client, registryFolder(registry), null);
  if (another !== undefined)
    throw new CommandFailure(
      "conflict",
      `several users have a password in ${registryFolder(registry)}: keep one there`,
    );
  const password = login === undefined ? null : await readPassword(client, login);
  if (login === undefined || password === null) {
    io.exitCode = 1;
    return void io.stdout.write(notFound);
  }
  if (!isUtf8(password)) throw new CommandFailure("usage", `${printable(login.path)} is binary: docker takes a text`);
  const answer = JSON.stringify({ ServerURL: registry, Username: login.user, Secret: password.toString() });
  password.fill(0);
  io.stdout.write(`${answer}\n`);
}

/** A registry has one user: a new one replaces it. */
async function store(client: StrongroomClient, input: Buffer): Promise<void> {
  const { registry, user, password } = readLogin(input);
  const before = await loginsIn(client, registryFolder(registry), null);
  await storePassword(
    client,
    registryFolder(registry) + encodeSegment(user),
    password,
    `password of docker for ${registry}`,
  );
  password.fill(0);
  for (const login of before) if (login.user !== user) await eraseLogin(client, login, null);
}

async function erase(client: StrongroomClient, registry: string): Promise<void> {
  for (const login of await loginsIn(client, registryFolder(registry), null)) await eraseLogin(client, login, null);
}

async function list(io: Io, client: StrongroomClient): Promise<void> {
  const users = new Map<string, string>();
  for await (const { entries } of client.pages({ prefix: folder, limit: 1000 })) {
    for (const { path } of entries) {
      const [registry = null, user = null, ...deeper] = path.slice(folder.length).split("/").map(decodeSegment);
      if (registry !== null && user !== null && deeper.length === 0) users.set(registry, user);
    }
  }
  io.stdout.write(`${JSON.stringify(Object.fromEntries(users))}\n`);
}

function readLogin(input: Buffer): { readonly registry: string; readonly user: string; readonly password: Buffer } {
  if (!isUtf8(input)) throw new CommandFailure("usage", "the input is not UTF-8");
  const login = parseJsonObject(input.toString());
  const { ServerURL: registry = "", Username: user = "", Secret: password } = login ?? {};
  if (login !== null && registry === "") throw new CommandFailure("usage", noRegistry);
  if (login !== null && user === "") throw new CommandFailure("usage", noUser);
  if (isText(registry) && isText(user) && isText(password)) return { registry, user, password: Buffer.from(password) };
  throw new CommandFailure("usage", "the input must be a JSON object with ServerURL, Username and Secret");
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "" && !/\p{Surrogate}/u.test(value);
}

function registryFolder(registry: string): string {
  if (registry === "") throw new CommandFailure("usage", noRegistry);
  return `${folder}${encodeSegment(registry)}/`;
}
