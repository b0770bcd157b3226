/** `strongroom agent env`: the variables of a program in a container that reaches the broker by its Unix socket alone. */
import { mkdir, readdir, rm } from "node:fs/promises";
import { connect } from "node:net";
import { dirname, join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import type { Agent, StrongroomClient } from "../../client/client.js";
import { withClient } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { localTime, printable, say } from "../kit/output.js";
import { agentEnvironment } from "../run/agent-environment.js";
import { createSession, mustHaveUses, revokeSession, type SessionFlags, withProject } from "../run/agent-session.js";
import { wgetrcName, writeTrust } from "../run/trust.js";

type Flags = SessionFlags & { readonly socket?: string };

export async function printEnvironment(io: Io, command: readonly string[], given: Flags): Promise<void> {
  const { socket } = given;
  if (socket === undefined) throw new CommandFailure("usage", "env needs --socket FILE, the broker's socket");
  if (command.length > 0) throw new CommandFailure("usage", "env takes no command: agent run starts one");
  const flags = await withProject(io, given);
  await withClient(io, flags, async (client) => {
    await mustBeBroker(socket);
    await mustHaveUses(client, flags);
    const session = await createSession(client, flags);
    try {
      await print(io, client, session, flags, dirname(resolve(socket)));
    } catch (error) {
      await revokeSession(io, client, session);
      throw error;
    }
  });
}

/** How long the broker may take to answer, in milliseconds. */
const patienceMs = 10_000;

/** @throws CommandFailure usage, where no broker listens: the program would send its token to what does */
async function mustBeBroker(socket: string): Promise<void> {
  const connection = connect(socket);
  connection.setTimeout(patienceMs, () => connection.destroy());
  connection.write("GET / HTTP/1.1\r\nHost: broker\r\nConnection: close\r\n\r\n");
  const response = await text(connection).catch(() => "");
  if (response.includes("\r\nStrongroom-Broker: refused\r\n")) return;
  const problem = `the broker does not listen at ${printable(socket)}`;
  throw new CommandFailure("usage", `${problem}: start the server with --broker-socket`);
}

async function print(io: Io, client: StrongroomClient, session: Agent, flags: Flags, beside: string): Promise<void> {
  await removeEnded(io, client, beside);
  const directory = join(beside, session.name);
  await mkdir(directory);
  const { variables } = await writeTrust(directory, session.certificate, io.env);
  const trust = { ...variables, WGETRC: join(directory, wgetrcName) };
  const environment = agentEnvironment({}, session, trust, flags.placeholder ?? [], flags);
  for (const [name, value = ""] of Object.entries(environment)) io.stdout.write(`export ${name}=${forShell(value)}\n`);
  if (flags.quiet) return;
  const end = session.expiresAt === null ? "" : ` ends ${localTime(new Date(session.expiresAt))}, or`;
  say(io, `session ${session.name}${end} with  strongroom token revoke ${session.name}\n`);
}

/** Removes the certificates of ended sessions from the socket's directory. */
async function removeEnded({ clock }: Io, client: StrongroomClient, beside: string): Promise<void> {
  const { tokens } = await client.listTokens();
  const valid = tokens.filter(({ expiresAt }) => expiresAt === null || Date.parse(expiresAt) > clock.now());
  const names = new Set(valid.map(({ name }) => name));
  const found = (await readdir(beside)).filter((name) => /^agent-[0-9a-f]{12}$/.test(name) && !names.has(name));
  await Promise.all(found.map((name) => rm(join(beside, name), { recursive: true, force: true })));
}

function forShell(value: string): string {
  return `'${value.replaceAll("'", "'\\''")}'`;
}
