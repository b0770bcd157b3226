/**
 * `strongroom credentials`: secrets as Unix sockets, for systemd's LoadCredential and programs that read a socket.
 * A value is read when a program connects, and never stored. While the vault is locked, connections wait.
 * A secret that is deleted takes its socket along.
 */
import { chmodSync, chownSync, lstatSync, mkdirSync, readFileSync, type Stats } from "node:fs";
import { basename, resolve } from "node:path";
import type { Command } from "commander";
import { nonEmpty } from "../../cli/kit/args/args.js";
import { mustBePath } from "../../cli/kit/args/paths.js";
import { type ConnectionFlags, withClient, withConnection } from "../../cli/kit/connection/server.js";
import { CommandFailure, clientFailure, failureReason, systemCode } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { printable, say } from "../../cli/kit/output.js";
import { holdingSignals } from "../../cli/kit/programs/held-signals.js";
import { StrongroomError, type VaultStatus } from "../../client/client.js";
import { boundNameBytes, HeldSockets } from "./held-sockets.js";
import { ShortToken } from "./short-token.js";

type Flags = ConnectionFlags & { readonly dir: string; readonly group?: string };

const details = `
Each secret is a socket DIR/NAME; NAME is the path's last segment unless given:
  strongroom credentials --dir ~/.cache/creds app/db/password smtp=mail/password
A program that connects gets the value's bytes and the end. In a systemd unit:
  LoadCredential=password:%h/.cache/creds/password

The command runs in the foreground and starts while the vault is locked, too:
connections wait until it is unlocked. With the root token, it makes a token for
these paths, which ends with the command or after an hour.`;

export function define(command: Command, io: Io): void {
  command
    .description("Serves secrets on Unix sockets, one each.")
    .argument("<secret...>", "paths of secrets, or NAME=PATH")
    .requiredOption("--dir <directory>", "where the sockets are; made where it is missing", nonEmpty)
    .option("--group <name>", "whose members may connect too", nonEmpty)
    .addHelpText("after", details);
  withConnection(command).action((secrets, flags) => credentials(io, secrets, flags));
}

/** How often connections are looked for, and the server is asked for its state, in milliseconds. */
const [roundMs, statusMs, checkMs] = [200, 1000, 5000];

async function credentials(io: Io, given: readonly string[], flags: Flags): Promise<void> {
  const paths = parseSecrets(given, flags.dir);
  const group = flags.group === undefined ? null : groupId(flags.group);
  const { locked } = await withClient(io, { ...flags, nonInteractive: true }, (client) => client.status());
  const token = new ShortToken(io, flags, [...paths.values()]);
  await holdingSignals(io, async (release) => {
    let sockets: HeldSockets | null = null;
    try {
      if (!locked) await mustExist(token, paths);
      makeDirectory(io, flags.dir, group);
      sockets = await HeldSockets.open(io, resolve(flags.dir), [...paths.keys()], group);
      if (locked) say(io, "the vault is locked: connections wait until it is unlocked\n");
      const handout = new Handout(io, flags, token, sockets, paths, !locked);
      await release(() => untilSignal(io, (ended) => handout.run(ended)));
    } finally {
      await sockets?.end();
      await token.end();
    }
  });
}

/** Returns the paths by the names of their sockets. @throws CommandFailure usage */
function parseSecrets(given: readonly string[], directory: string): ReadonlyMap<string, string> {
  const paths = new Map<string, string>();
  const directoryBytes = Buffer.byteLength(resolve(directory)) + 1;
  for (const text of given) {
    const [, named, rest = text] = /^([^=/]+)=(.*)$/.exec(text) ?? [];
    const path = mustBePath(rest);
    const name = named ?? basename(path);
    const shown = printable(name);
    if (!/^[^./\0][^/\0]*$/.test(name))
      throw new CommandFailure("usage", `${shown} is no name of a socket: begin with another character than a dot`);
    if (paths.has(name)) throw new CommandFailure("usage", `two secrets would be the socket ${shown}: write NAME=PATH`);
    if (Math.max(boundNameBytes, Buffer.byteLength(name)) + directoryBytes > mostPathBytes)
      throw new CommandFailure(
        "usage",
        `the path of the socket ${shown} is longer than ${mostPathBytes} bytes: use a shorter --dir`,
      );
    paths.set(name, path);
  }
  return paths;
}

/** Limit of the kernel for the path of a Unix socket. */
const mostPathBytes = 107;

/** @throws CommandFailure notFound, forbidden, locked … */
async function mustExist(token: ShortToken, paths: ReadonlyMap<string, string>): Promise<void> {
  for (const path of paths.values()) {
    if (!(await exists(token, path))) throw new CommandFailure("notFound", `there is no secret at ${printable(path)}`);
  }
}

/** The token can read these secrets and nothing else: to know that one is there, it must be read. */
async function exists(token: ShortToken, path: string): Promise<boolean> {
  const value = await read(token, path);
  value?.fill(0);
  return value !== null;
}

/** Returns the value's bytes, or null where there is no secret. @throws CommandFailure */
async function read(token: ShortToken, path: string): Promise<Uint8Array<ArrayBuffer> | null> {
  const client = await token.client();
  try {
    return (await client.getBytes(path)).reveal();
  } catch (error) {
    if (!(error instanceof StrongroomError)) throw error;
    if (error.code === "NOT_FOUND") return null;
    throw await clientFailure(error, client);
  }
}

async function untilSignal(io: Io, work: (ended: AbortSignal) => Promise<void>): Promise<void> {
  const ended = new AbortController();
  const end = () => ended.abort();
  const signals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;
  for (const signal of signals) io.events.on(signal, end);
  try {
    await work(ended.signal);
  } finally {
    for (const signal of signals) io.events.off(signal, end);
  }
}

/** Reads values for programs that connect. */
class Handout {
  readonly #io: Io;
  readonly #flags: ConnectionFlags;
  readonly #token: ShortToken;
  readonly #sockets: HeldSockets;
  readonly #paths: ReadonlyMap<string, string>;
  #isOpen: boolean;
  /** Whether all secrets were there at some time. */
  #isChecked: boolean;
  /** State of the vault after the secrets were last looked for. */
  #known = "";
  #checkedAt = Number.NEGATIVE_INFINITY;

  constructor(
    io: Io,
    flags: ConnectionFlags,
    token: ShortToken,
    sockets: HeldSockets,
    paths: ReadonlyMap<string, string>,
    isOpen: boolean,
  ) {
    this.#io = io;
    this.#flags = { ...flags, nonInteractive: true };
    this.#token = token;
    this.#sockets = sockets;
    this.#paths = paths;
    this.#isOpen = isOpen;
    this.#isChecked = isOpen;
  }

  /** Ends with the signal. @throws CommandFailure where no secret is left, or the token is not valid */
  async run(ended: AbortSignal): Promise<void> {
    const { clock } = this.#io;
    let statusAt = Number.NEGATIVE_INFINITY;
    while (!ended.aborted) {
      const isDue = clock.elapsed() - statusAt >= statusMs;
      if (isDue) statusAt = clock.elapsed();
      await this.#round(isDue);
      if (this.#sockets.names.length === 0) throw new CommandFailure("notFound", "none of the secrets is left");
      await this.#io.sleep(roundMs, ended).catch(() => {});
    }
  }

  async #round(isDue: boolean): Promise<void> {
    try {
      if (isDue) await this.#look();
      if (!this.#isOpen) return;
      const waiting = await this.#sockets.waiting();
      if (waiting.length > 0) await this.#handOut(waiting);
      else if (isDue) this.#sockets.look();
    } catch (error) {
      if (!waits(error)) throw error;
      this.#isOpen = false; // until the next look
    }
  }

  /** Asks for the vault's state, and where something has changed for the secrets that are left. */
  async #look(): Promise<void> {
    const status = await this.#status();
    this.#isOpen = !status.locked;
    if (!this.#isOpen) return;
    if (!this.#isChecked) await mustExist(this.#token, this.#paths);
    this.#isChecked = true;
    const now = this.#io.clock.elapsed();
    if (stateText(status) === this.#known || now - this.#checkedAt < checkMs) return;
    for (const name of this.#sockets.names)
      if (!(await exists(this.#token, this.#paths.get(name) ?? ""))) this.#close(name);
    this.#checkedAt = now;
    const after = await this.#status();
    // These reads are activity in the vault themselves, after which the secrets need not be read again.
    if (after.secretCount === status.secretCount) this.#known = stateText(after);
  }

  #status(): Promise<VaultStatus> {
    return withClient(this.#io, this.#flags, (client) => client.status());
  }

  async #handOut(names: readonly string[]): Promise<void> {
    const values = new Map<string, Uint8Array<ArrayBuffer>>();
    for (const name of names) {
      const value = await read(this.#token, this.#paths.get(name) ?? "");
      if (value === null) this.#close(name);
      else values.set(name, value);
    }
    this.#sockets.serve(values);
  }

  #close(name: string): void {
    this.#sockets.close(name);
    say(this.#io, `the secret at ${printable(this.#paths.get(name) ?? "")} is gone: its socket is removed\n`);
  }
}

/** Changes with every request that may have deleted a secret. */
function stateText({ secretCount, lastActivity }: VaultStatus): string {
  return `${secretCount} ${lastActivity}`;
}

/** Whether connections wait until it is over: the vault is locked, or its server does not answer. */
function waits(error: unknown): boolean {
  if (!(error instanceof CommandFailure)) return false;
  return ["locked", "unreachable", "rateLimited", "unexpected"].includes(error.exit);
}

/** Makes the directory where it is missing. @throws CommandFailure unexpected, conflict */
function makeDirectory({ uid }: Io, directory: string, group: number | null): void {
  const mode = group === null ? 0o700 : 0o750;
  try {
    if (mkdirSync(directory, { recursive: true, mode: 0o700 }) !== undefined) {
      if (group !== null) chownSync(directory, -1, group);
      chmodSync(directory, mode);
    }
  } catch (error) {
    throw new CommandFailure("unexpected", `${printable(directory)} cannot be made${failureReason(systemCode(error))}`);
  }
  const problem = directoryProblem(lstatSync(directory), uid, mode, group);
  if (problem === null) return;
  const wanted = `your own directory of mode ${mode.toString(8)}${group === null ? "" : " and of this group"}`;
  throw new CommandFailure("conflict", `${printable(directory)} must be ${wanted}: ${problem}`);
}

function directoryProblem(found: Stats, uid: number | null, mode: number, group: number | null): string | null {
  const isOurs = found.isDirectory() && (uid === null || found.uid === uid);
  if (!isOurs || (found.mode & 0o777 & ~mode) !== 0) return "others could take a socket's place";
  if (group === null || (found.gid === group && (found.mode & 0o050) === 0o050)) return null;
  return "the group could not reach the sockets";
}

/** @throws CommandFailure usage */
function groupId(name: string): number {
  const lines = readFileSync("/etc/group", "utf8")
    .split("\n")
    .map((line) => line.split(":"));
  const id = /^\d+$/.test(name) ? name : lines.find(([known]) => known === name)?.[2];
  if (id !== undefined) return Number(id);
  throw new CommandFailure("usage", `there is no group ${printable(name)}`);
}
