/** Connection of a command to the server; on a terminal, it asks for the passphrase of a locked vault. */
import type { Command } from "commander";
import type { Bytes } from "../../../../workers/protocol.js";
import { type Acknowledgement, StrongroomClient, StrongroomError } from "../../../client/client.js";
import { readOneSetting } from "../../../config/settings.js";
import { connectionOptions, homeOption } from "../args/args.js";
import { clientEnvironment } from "../args/start-settings.js";
import { CommandFailure, clientFailure } from "../errors.js";
import type { Io } from "../io.js";
import { localMinute, printable, say } from "../output.js";
import { askPassphrase, tries, triesLeft } from "../prompts/passphrase.js";
import { sandboxFailure } from "./in-sandbox.js";

export type ConnectionFlags = {
  readonly home?: string;
  readonly address?: string;
  readonly tokenFile?: string;
  readonly cacert?: string;
  /** Milliseconds. */
  readonly timeout?: number;
  /** With any of these, a command never asks for the passphrase of a locked vault. */
  readonly nonInteractive?: true;
  /** Default: STRONGROOM_AUTOSTART. */
  readonly autostart?: boolean;
  readonly json?: true;
  readonly quiet?: true;
};

/** Adds the flags that say where the server is and how long to wait for it. `help flags` describes them. */
export function withConnection(command: Command): Command {
  const own = command.options.map(({ long }) => long);
  for (const option of connectionOptions()) {
    if (!own.includes(option.long)) command.addOption(option.hideHelp());
  }
  return command;
}

/** Returns whether an address was given: the server may then run on another machine. */
export function namesServer(io: Io, { address }: ConnectionFlags): boolean {
  return Boolean(address ?? io.env["STRONGROOM_ADDRESS"]);
}

export function withHome(command: Command): Command {
  return command.addOption(homeOption());
}

/**
 * Runs `work` with a client, then closes its connections. On a terminal, the client asks for the passphrase of a locked
 * vault. @throws CommandFailure
 */
export async function withClient<T>(
  io: Io,
  flags: ConnectionFlags,
  work: (client: StrongroomClient) => Promise<T>,
): Promise<T> {
  try {
    return await withRunningServer(io, flags, work);
  } catch (error) {
    const isDown = error instanceof CommandFailure && error.exit === "unreachable";
    if (!isDown || namesServer(io, flags) || !(flags.autostart ?? io.env["STRONGROOM_AUTOSTART"] === "1")) throw error;
  }
  const { startInBackground } = await import("./background-server.js");
  const { warnOfUnknownVariables } = await import("../args/settings-flags.js");
  if (!flags.quiet) warnOfUnknownVariables(io);
  const { pid } = await startInBackground(io, flags.home === undefined ? {} : { home: flags.home });
  if (!flags.quiet) say(io, `started the server in the background (pid ${pid})\n`);
  return withRunningServer(io, flags, work);
}

const patienceMs = 600_000;

/** Like `withClient`, for work that takes long in a large vault or on a busy machine: waits ten minutes by default. */
export function withPatientClient<T>(
  io: Io,
  flags: ConnectionFlags,
  work: (client: StrongroomClient) => Promise<T>,
): Promise<T> {
  return withClient(io, { ...flags, timeout: flags.timeout ?? patienceMs }, work);
}

async function withRunningServer<T>(
  io: Io,
  flags: ConnectionFlags,
  work: (client: StrongroomClient) => Promise<T>,
): Promise<T> {
  const { home, address, tokenFile, cacert: certificateFile, timeout: timeoutMs } = flags;
  const isSilent = flags.nonInteractive || flags.json || flags.quiet;
  const onTokenExpiring = flags.quiet ? undefined : (expiresAt: Date) => warnOfExpiry(io, expiresAt);
  const onLocked = isSilent ? undefined : () => unlockIfPossible(io, client);
  const environment = await clientEnvironment(io.env, home);
  const place = { home, address, tokenFile, certificateFile, environment };
  const options = { ...place, timeoutMs, onTokenExpiring, onLocked };
  const client: StrongroomClient = new StrongroomClient(options);
  try {
    return await work(client);
  } catch (error) {
    if (!(error instanceof StrongroomError)) throw error;
    throw sandboxFailure(error) ?? (await foreignServer(io, error, flags)) ?? (await clientFailure(error, client));
  } finally {
    await client.close();
  }
}

/** Another server may answer on the port while this home's is stopped: that is no attack. */
async function foreignServer(
  io: Io,
  { code, status }: StrongroomError,
  flags: ConnectionFlags,
): Promise<CommandFailure | null> {
  const isForeign = code === "UNTRUSTED_CERTIFICATE" || (code === "PROTOCOL" && status === undefined); // no TLS
  if (!isForeign || namesServer(io, flags) || flags.cacert !== undefined) return null;
  const { homeAt } = await import("../../../files/home.js");
  const { findHolder } = await import("../../../storage/files/claim.js");
  const home = homeAt(readOneSetting("home", flags.home, io.env));
  if ((await findHolder(home.vault)) !== null) return null;
  const other = code === "PROTOCOL" ? "something else" : "another one";
  const which = `no server is running for the vault in ${printable(home.path)} (${other} answers on its port)`;
  return new CommandFailure("unreachable", `${which}: start it with  strongroom up --port 0`);
}

function warnOfExpiry(io: Io, expiresAt: Date): void {
  const remedy = "renew it with the root token:  strongroom token rotate NAME";
  say(io, `warning: this token expires at ${localMinute(expiresAt)}: ${remedy}\n`);
}

const question = "Passphrase of the vault: ";

/** Returns whether it unlocked the vault: not without a vault or a terminal. @throws as `unlockOnTerminal` */
async function unlockIfPossible(io: Io, client: StrongroomClient): Promise<boolean> {
  const { initialized, locked } = await client.status();
  if (!initialized) return false;
  return !locked || (await unlockOnTerminal(io, client, `the vault is locked\n${question}`)) !== null;
}

/**
 * Asks up to three times; returns null without a terminal.
 * @throws CommandFailure wrongPassphrase, aborted, usage; StrongroomError
 */
export async function unlockOnTerminal(
  io: Io,
  client: StrongroomClient,
  first = question,
): Promise<Acknowledgement | null> {
  let text = first;
  for (let left = tries - 1; left >= 0; left -= 1) {
    const asked = await askOrExplain(io, text, left < tries - 1);
    if (asked === null) return null;
    const unlocked = typeof asked === "string" ? null : await tryPassphrase(client, asked).finally(() => asked.fill(0));
    if (unlocked !== null) return unlocked;
    const problem = typeof asked === "string" ? asked : "wrong passphrase";
    text = `${problem}, ${triesLeft(left)}\n${question}`;
  }
  throw new CommandFailure("wrongPassphrase", wrongEveryTime);
}

/** Returns the passphrase, null without a terminal, or what is mistyped in a key. */
async function askOrExplain(io: Io, text: string, discardsEarly: boolean): Promise<Bytes | string | null> {
  try {
    return await askPassphrase(io, { text, discardsEarly, cancelled: "cancelled: the vault is still locked" });
  } catch (error) {
    if (error instanceof CommandFailure && error.exit === "wrongPassphrase") return error.message;
    throw error;
  }
}

/** Returns null when the passphrase is wrong. */
async function tryPassphrase(client: StrongroomClient, passphrase: Bytes): Promise<Acknowledgement | null> {
  try {
    return await client.unlock(passphrase);
  } catch (error) {
    if (error instanceof StrongroomError && error.credential === "passphrase") return null;
    throw error;
  }
}

const wrongEveryTime =
  `wrong passphrase, ${tries} times: the vault is still locked. Check it before you try again: ` +
  "10 wrong ones within a minute block further tries for 5 minutes";
