/**
 * `strongroom ssh-agent`: an agent for ssh and git whose keys are transit keys of the vault.
 * The server signs: the agent never has a private key, and holds a token that can sign and nothing else.
 * It runs in the background, in the foreground, or for as long as a command.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { lstatSync, mkdtempSync, rmdirSync, rmSync, statSync } from "node:fs";
import { connect, type Server } from "node:net";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { type Command, Option } from "commander";
import { nonEmpty, positiveDuration } from "../../cli/kit/args/args.js";
import { clientEnvironment } from "../../cli/kit/args/start-settings.js";
import { type ConnectionFlags, withClient, withConnection } from "../../cli/kit/connection/server.js";
import { CommandFailure, systemCode } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { printable, printLine, say } from "../../cli/kit/output.js";
import { runChild } from "../../cli/kit/programs/child-process.js";
import { canStart } from "../../cli/kit/programs/find-program.js";
import { holdingSignals, type Release } from "../../cli/kit/programs/held-signals.js";
import { readableEnvironment, spawnInheriting } from "../../cli/kit/programs/inherited.js";
import { withoutTokens } from "../../cli/kit/programs/without-tokens.js";
import { confirm } from "../../cli/kit/prompts/prompt.js";
import { StrongroomClient, StrongroomError } from "../../client/client.js";
import { keepsNames } from "../../client/ownership.js";
import { agentServer } from "./agent.js";
import { VaultKeys } from "./vault-keys.js";

type Flags = ConnectionFlags & {
  readonly socket?: string;
  readonly confirm?: true;
  readonly ttl?: number;
  readonly foreground?: true;
  readonly detached?: true;
};

/** Whether a signature may be made. */
type Approval = (question: string) => Promise<boolean>;

/** `revoke`: ends the token, where this command made it. */
type SigningToken = { readonly token: string | undefined; readonly revoke: () => Promise<void> };

const dayMs = 24 * 3600 * 1000;
const defaultTtlMs = 12 * 3600 * 1000;
const ready = "ready";

const details = `
Without a command the agent goes to the background and prints what a shell
needs:
  eval "$(strongroom ssh-agent)"
With one, it runs for as long as the command:
  strongroom ssh-agent -- git push

The newest versions of ed25519, ecdsa-p256 and rsa keys are offered; ssh-add -l
lists them, and strongroom transit show NAME --ssh prints the line for
authorized_keys. Signatures are made in the server: the private keys stay there.

With the root token, the command makes a token that can only sign, and revokes
it when the command ends; in the background it expires after --ttl. Any other
token is used as it is. While the vault is locked, signing fails and ssh says
that the agent refused the operation: strongroom unlock, then try again.

--confirm asks before each signature, with the program in SSH_ASKPASS where a
display is there, otherwise on the terminal.`;

export function define(command: Command, io: Io): void {
  command
    .description("Serves transit keys to ssh, git and other clients of ssh-agent.")
    .usage("[flags] [-- command [arguments...]]")
    .argument("[command...]", "a command to run with the agent, after --")
    .option("--socket <path>", "the agent's socket; default: a new one in the runtime directory", nonEmpty)
    .option("--confirm", "ask before each signature")
    .option("--ttl <duration>", "how long the agent's token is valid; default: 12h", positiveDuration(365 * dayMs))
    .option("--foreground", "do not go to the background")
    .addOption(new Option("--detached").hideHelp())
    .addHelpText("after", details);
  withConnection(command)
    .passThroughOptions()
    .action((command, flags) => sshAgent(io, command, flags));
}

async function sshAgent(io: Io, command: readonly string[], flags: Flags): Promise<void> {
  const approve = flags.confirm ? mustFindApproval(io, command, flags) : null;
  if (flags.detached) return serveAgent(io, command, flags, approve, given(io), (work) => work());
  if (command[0] !== undefined && !canStart(io, command[0])) return;
  await withClient(io, flags, (client) => client.listTransitKeys()); // asks for the passphrase, before signals wait
  await holdingSignals(io, async (release) => {
    const token = await signingToken(io, flags);
    if (command.length === 0 && !flags.foreground) await startInBackground(io, flags, token, release);
    else await serveAgent(io, command, flags, approve, token, release);
  });
}

async function serveAgent(
  io: Io,
  command: readonly string[],
  flags: Flags,
  approve: Approval | null,
  { token, revoke }: SigningToken,
  release: Release,
): Promise<void> {
  const socket = socketPath(io, flags);
  const client = new StrongroomClient({
    ...place(flags),
    token,
    environment: await clientEnvironment(io.env, flags.home),
  });
  const failed = (error: unknown) => {
    if (!flags.detached) say(io, `strongroom: ${failureText(error)}\n`);
  };
  const server = agentServer(new VaultKeys(client, approve, failed));
  let isListening = false;
  try {
    await listen(io, server, socket.path);
    isListening = true;
    await release(() =>
      command.length > 0 ? runWith(io, command, socket.path) : serveUntilSignal(io, flags, socket.path),
    );
  } finally {
    server.close();
    if (isListening) socket.remove(); // else the file may be another agent's, or no socket
    await client.close();
    await revoke();
  }
}

function failureText(error: unknown): string {
  if (error instanceof StrongroomError || error instanceof CommandFailure) return printable(error.message);
  return "the request of an ssh client failed";
}

function place({ home, address, cacert: certificateFile, timeout: timeoutMs }: Flags) {
  return { home, address, certificateFile, timeoutMs };
}

/** The token from the environment, as the command in the background gets it. */
function given(io: Io): SigningToken {
  return { token: io.env["STRONGROOM_TOKEN"], revoke: async () => {} };
}

/** Makes a token that can only sign, where the current one can do everything. */
async function signingToken(io: Io, flags: Flags): Promise<SigningToken> {
  return withClient(io, flags, async (client) => {
    const { name: current } = await client.showSelf();
    if (current !== "root") return given(io);
    const name = `ssh-agent-${randomBytes(6).toString("hex")}`;
    const ttlSeconds = Math.ceil((flags.ttl ?? defaultTtlMs) / 1000);
    const { token } = await client.createToken(name, { can: ["sign"], ttlSeconds });
    const revoke = async () => {
      await withClient(io, { ...flags, nonInteractive: true }, (root) => root.revokeToken(name)).catch(() => {});
    };
    return { token, revoke };
  });
}

/** Runs this command again without a terminal. The agent there keeps the token, unless it does not start. */
async function startInBackground(
  io: Io,
  flags: Flags,
  { token, revoke }: SigningToken,
  release: Release,
): Promise<void> {
  const path = flags.socket === undefined ? join(newDirectory(io), "agent") : resolve(flags.socket);
  try {
    const child = await spawnAgent(io, flags, path, token ?? io.env["STRONGROOM_TOKEN"]);
    await release(async () => printForShell(io, path, child.pid ?? 0)).catch((error: unknown) => {
      child.kill();
      throw error;
    });
  } catch (error) {
    await revoke();
    throw error;
  }
}

/** Waits until it listens. */
async function spawnAgent(io: Io, flags: Flags, path: string, token: string | undefined): Promise<ChildProcess> {
  const [node, ...words] = io.program;
  const child = spawn(node, [...words, ...commandArguments(flags, path)], {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: token === undefined ? io.env : withToken(io, token),
  });
  const problem = await new Promise<string | null>((started) => {
    let text = "";
    child.stdout.once("data", () => started(null));
    child.stderr.on("data", (part: Buffer) => {
      text += part.toString("utf8");
    });
    child.once("exit", () => started(text.trim() || "strongroom: the agent ended at once"));
  });
  if (problem !== null) throw new CommandFailure("unexpected", problem.replace(/^strongroom: /, ""));
  for (const stream of [child.stdout, child.stderr]) stream.destroy();
  child.unref();
  return child;
}

/** Returns the environment with the token, and without a file of another token. */
function withToken(io: Io, token: string): NodeJS.ProcessEnv {
  const { STRONGROOM_TOKEN_FILE: _, ...environment } = withoutTokens(io.env);
  return { ...environment, STRONGROOM_TOKEN: token };
}

function commandArguments({ home, address, cacert, timeout, confirm: asks }: Flags, path: string): string[] {
  const connection = [
    ...(home === undefined ? [] : ["--home", home]),
    ...(address === undefined ? [] : ["--address", address]),
    ...(cacert === undefined ? [] : ["--cacert", cacert]),
    ...(timeout === undefined ? [] : ["--timeout", `${timeout}ms`]),
  ];
  return ["ssh-agent", "--detached", "--socket", path, ...(asks ? ["--confirm"] : []), ...connection];
}

function printForShell(io: Io, path: string, pid: number): void {
  printLine(io, `SSH_AUTH_SOCK='${path.replaceAll("'", "'\\''")}'; export SSH_AUTH_SOCK;`);
  printLine(io, `SSH_AGENT_PID=${pid}; export SSH_AGENT_PID;`);
}

async function serveUntilSignal(io: Io, { detached }: Flags, path: string): Promise<void> {
  const ended = Promise.race(["SIGTERM", "SIGINT", "SIGHUP"].map((signal) => once(io.events, signal)));
  if (detached) io.stdout.write(`${ready}\n`);
  else printForShell(io, path, io.pid);
  await ended;
}

async function runWith(io: Io, command: readonly string[], path: string): Promise<void> {
  const [program = "", ...args] = command;
  const env = { ...withoutTokens(readableEnvironment(io)), SSH_AUTH_SOCK: path, SSH_AGENT_PID: String(io.pid) };
  const start = () => spawnInheriting({ file: program, argv0: program, args }, env, (text) => say(io, text));
  io.exitCode = await runChild(io, start).catch((error: unknown) => {
    throw new CommandFailure(
      "usage",
      `${printable(program)} cannot be started (${systemCode(error) ?? "unknown reason"})`,
    );
  });
}

/** Only its owner can connect to the socket. */
async function listen(io: Io, server: Server, path: string): Promise<void> {
  await removeStale(path);
  const before = io.umask(0o177);
  try {
    server.listen(path);
    await once(server, "listening");
  } catch (error) {
    throw new CommandFailure(
      "unexpected",
      `${printable(path)} cannot be used (${systemCode(error) ?? "unknown reason"})`,
    );
  } finally {
    io.umask(before);
  }
}

/** Removes a socket without a listener. @throws CommandFailure conflict */
async function removeStale(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isSocket()) throw new CommandFailure("conflict", `${printable(path)} is not a socket: name another one`);
  const socket = connect(path);
  try {
    await once(socket, "connect");
  } catch (error) {
    if (systemCode(error) === "ECONNREFUSED") rmSync(path, { force: true });
    return;
  } finally {
    socket.destroy();
  }
  throw new CommandFailure("conflict", `another agent listens on ${printable(path)}: end it, or name another --socket`);
}

function socketPath(io: Io, { socket, detached }: Flags): { readonly path: string; readonly remove: () => void } {
  const path = socket === undefined ? join(newDirectory(io), "agent") : resolve(socket);
  const isOwn = socket === undefined || (detached === true && basename(dirname(path)).startsWith(ownPrefix));
  const remove = () => {
    rmSync(path, { force: true });
    if (isOwn) removeEmpty(dirname(path));
  };
  return { path, remove };
}

/** DANGER: the directory of --socket may only look like a directory that this command made, and hold other files. */
function removeEmpty(directory: string): void {
  try {
    rmdirSync(directory);
  } catch {
    // it is not empty
  }
}

const ownPrefix = "strongroom-ssh-";

/** @throws CommandFailure when another user could put a socket of theirs in the place of ours */
function newDirectory(io: Io): string {
  const { XDG_RUNTIME_DIR: runtime = "" } = io.env;
  const places = [isAbsolute(runtime) ? runtime : io.temporaryDirectory(), io.temporaryDirectory()];
  const place = places.find((each) => keepsNames(statSync(each)));
  if (place !== undefined) return mkdtempSync(join(place, ownPrefix));
  throw new CommandFailure(
    "unexpected",
    `other users can replace files in ${io.temporaryDirectory()}: name a socket with --socket`,
  );
}

/** Returns what asks before a signature. @throws CommandFailure usage, where nothing could ask */
function mustFindApproval(io: Io, command: readonly string[], flags: Flags): Approval {
  const { SSH_ASKPASS: program, SSH_ASKPASS_REQUIRE: require } = io.env;
  const { DISPLAY, WAYLAND_DISPLAY } = io.env;
  if (program && (DISPLAY || WAYLAND_DISPLAY || require === "force"))
    return askWith(program, { ...withoutTokens(readableEnvironment(io)), SSH_ASKPASS_PROMPT: "confirm" });
  if (command.length > 0 || flags.foreground) return async (question) => (await confirm(io, question)) === true;
  throw new CommandFailure(
    "usage",
    "--confirm has nothing to ask with: set SSH_ASKPASS, or use --foreground or a command after --",
  );
}

function askWith(program: string, env: NodeJS.ProcessEnv): Approval {
  return async (question) => {
    const child = spawn(program, [question], { stdio: "ignore", env });
    const [code] = (await once(child, "exit").catch(() => [1])) as [number | null];
    return code === 0;
  };
}
