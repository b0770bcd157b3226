/** `strongroom agent`: programs that use secrets through the broker and cannot read them. */
import { mkdtemp, rm } from "node:fs/promises";
import { connect, isIP, type Socket } from "node:net";
import { join } from "node:path";
import { Argument, type Command, Option } from "commander";
import type { Agent, StrongroomClient } from "../../client/client.js";
import { Problem, positiveDuration } from "../../config/readers.js";
import { relayPreface } from "../../relay-preface.js";
import { nonEmpty, onlyForActions, RepeatableOption } from "../kit/args/args.js";
import { mustBeScope } from "../kit/args/paths.js";
import { withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { say } from "../kit/output.js";
import { runChild, startProgram } from "../kit/programs/child-process.js";
import { canStart } from "../kit/programs/find-program.js";
import { holdingSignals, type Release } from "../kit/programs/held-signals.js";
import { readableEnvironment } from "../kit/programs/inherited.js";
import { agentEnvironment } from "../run/agent-environment.js";
import { createSession, mustHaveUses, revokeSession, type SessionFlags, withProject } from "../run/agent-session.js";
import { canWriteHome, mustHaveSandbox, sandboxed, sessionFiles, startRelay } from "../run/sandbox.js";
import { runSandbox, startGate } from "../run/sandbox-start.js";
import { withWgetrc, writeTrust } from "../run/trust.js";

type Flags = SessionFlags & {
  readonly socket?: string;
  readonly sandbox?: boolean;
  readonly write?: readonly string[];
};

const details = `
The program reaches the hosts that secrets are bound to (strongroom use add)
through the server's broker, which puts the secrets into its requests. Its
environment has the proxy and a certificate authority of this session, for curl,
git, wget, Python, Perl, Node.js, Go, Cargo and Deno, beside what it trusts
already, and nothing of STRONGROOM_*. A binding with a name is also served at
http://127.0.0.1:PORT/r/NAME/, for programs that take a base URL; they send the
token in AGENT_TOKEN as their key.

Without --use and --allow-host, the table [agent] of the project file is used
(strongroom help allow), and without one every secret that is bound to a host.
Other hosts are refused, except those of --allow-host; --egress any allows all.

It runs in a sandbox (bubblewrap): without the vault's home and token, other
processes, sockets, and every network but the broker; it can write the working
directory, a /tmp of its own, and what --write names. Without the sandbox, a
program of your user can read the root token's file, and with it every secret.

env prints the same variables as  export NAME='value'  for a container without a
network that has the directory of --socket at the same path: there the files of
the certificate authority are. The session ends after --ttl.`;

const dayMs = 24 * 3600 * 1000;

export function define(command: Command, io: Io): void {
  const use = new RepeatableOption("--use <path>", "a secret, or a subtree if it ends in a slash; may be repeated");
  const allow = new RepeatableOption("--allow-host <host>", "a host to reach without a secret; may be repeated");
  const placeholder = new RepeatableOption(
    "--placeholder <NAME>",
    "set this variable to a placeholder; may be repeated",
  );
  const write = new RepeatableOption("--write <dir>", "a directory that it can write; may be repeated");
  command
    .description("Runs a program that uses secrets without reading them, or prints what one needs for it.")
    .usage("run [flags] -- command [args...] | env --socket FILE")
    .addArgument(new Argument("<action>", "run a program, or print its variables").choices(["run", "env"]))
    .argument("[command...]", "the program and its arguments, after --")
    .addOption(use.argParser(readPaths))
    .addOption(allow.argParser(readHosts))
    .addOption(
      new Option("--egress <which>", "which other hosts: any or listed; default: listed").choices(["any", "listed"]),
    )
    .option(
      "--ttl <duration>",
      "the longest time that the session's token is valid; default: 8h",
      positiveDuration(30 * dayMs),
    )
    .addOption(placeholder.argParser(readNames))
    .addOption(write.argParser(readDirectories))
    .option("--socket <file>", "env: the broker's socket, of serve --broker-socket", nonEmpty)
    .option("--no-sandbox", "run it without a sandbox")
    .addOption(new Option("--sandbox").hideHelp())
    .option("-q, --quiet", "print nothing but errors")
    .addHelpText("after", details);
  const taken = { socket: ["env"], write: ["run"], sandbox: ["run"] };
  onlyForActions(withConnection(command), taken).action((action, command, flags) => agent(io, action, command, flags));
}

function readPaths(path: string, before: readonly string[] = []): string[] {
  return [...before, mustBeScope(path, "--use")];
}

function readNames(name: string, before: readonly string[] = []): string[] {
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return [...before, name];
  throw new CommandFailure("usage", "--placeholder must be the name of a variable");
}

function readDirectories(path: string, before: readonly string[] = []): string[] {
  return [...before, path];
}

/** The server checks the rest. */
function readHosts(host: string, before: readonly string[] = []): string[] {
  if (!/[/@\s]|:\d+$/.test(host) || isIP(host) !== 0) return [...before, host];
  throw new Problem("a host name, without scheme or port");
}

async function agent(io: Io, action: "run" | "env", command: readonly string[], given: Flags): Promise<void> {
  if (action === "env") return (await import("./agent-env.js")).printEnvironment(io, command, given);
  const [program, ...args] = command;
  if (program === undefined) throw new CommandFailure("usage", "no program given: add it after --");
  if (!canStart(io, program)) return;
  const flags = await withProject(io, given);
  if (flags.sandbox !== false) mustHaveSandbox(io, io.env, flags.write ?? []);
  await withClient(io, flags, async (client) => {
    if ((await client.status()).locked) await client.showBroker(); // asks for the passphrase, before signals wait
    await mustHaveUses(client, flags);
    await holdingSignals(io, (release) => runWithSession(io, client, { program, args, flags, release }));
  });
}

async function runWithSession(io: Io, client: StrongroomClient, command: SessionCommand): Promise<void> {
  const session = await createSession(client, command.flags);
  try {
    const directory = await mkdtemp(join(sessionsDirectory(io), "strongroom-agent-"));
    try {
      io.exitCode = await runSession(io, { ...command, session, directory });
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  } finally {
    await revokeSession(io, client, session);
  }
}

type SessionCommand = {
  readonly program: string;
  readonly args: readonly string[];
  readonly flags: Flags;
  readonly release: Release;
};

type Run = SessionCommand & { readonly session: Agent; readonly directory: string };

/** Returns the program's exit status. */
async function runSession(io: Io, { program, args, session, directory, flags, release }: Run): Promise<number> {
  const { variables, missing } = await writeTrust(directory, session.certificate, io.env);
  for (const name of missing) say(io, `warning: ${name} names no readable certificate: the default roots are used\n`);
  const env = agentEnvironment(readableEnvironment(io), session, variables, flags.placeholder ?? [], flags);
  if (!flags.quiet) say(io, opening(session, flags));
  const command = [program, ...args];
  if (flags.sandbox === false) {
    const own = await withWgetrc(env, directory, join(directory, "own-wgetrc"));
    return release(() => runChild(io, () => startProgram(command, own, { stdio: [...io.childStreams] })));
  }
  const { port } = session;
  const options = { command, place: flags, writable: flags.write ?? [], directory, port, environment: env };
  const sandbox = await sandboxed(io, options);
  if (!flags.quiet && canWriteHome(io, options.writable)) say(io, homeWarning);
  const relay = await startRelay(join(directory, sessionFiles.relay), () => connectAs(session));
  const gate = await startGate(directory, sandbox.expected);
  try {
    return await release(() => runSandbox(io, sandbox, env, gate));
  } finally {
    gate.close();
    relay.close();
  }
}

/** Connects to the broker for a program in the sandbox, which can use no token there but its session's. */
function connectAs({ port, token }: Agent): Socket {
  const socket = connect(port, "127.0.0.1");
  socket.write(relayPreface(token));
  return socket;
}

/** DANGER: not TMPDIR, which may be where another program in a sandbox can write. */
function sessionsDirectory(io: Io): string {
  return io.platform === "linux" ? "/tmp" : io.temporaryDirectory();
}

const homeWarning =
  "warning: the program can write your home directory, and with it what your shell runs later: start it in a project\n";

/** Two lines: what it protects from, and what it does not. */
function opening({ uses, name }: Agent, { sandbox }: Flags): string {
  const hosts = [...new Set(uses.map(({ host }) => host))].join(", ");
  const secrets =
    hosts === ""
      ? "no secret is bound to a host: bind one with  strongroom use add"
      : `secrets are put into requests to ${hosts}, and the program cannot read them there`;
  const limits =
    sandbox !== false
      ? "it cannot read the vault or reach other hosts, but can send any request to these hosts that the bindings allow"
      : "not protected: programs of your user can read the root token's file, and with it every secret";
  return `session ${name}: ${secrets}\n${limits}\n`;
}
