/** Connection to the server: its flags, and the messages and exit codes of failed requests. */
import type { Command } from "commander";
import { type ErrorCode, StrongroomClient, StrongroomError } from "../../client/client.js";
import type { VaultError } from "../../errors.js";
import { UnlockingClient } from "../prompt/unlocking-client.js";
import { CommandFailure, type ExitName } from "./exit-codes.js";
import { connectionOptions, homeOption } from "./global-flags.js";
import { localMinute } from "./local-time.js";
import { printable } from "./output.js";

/** The values of the flags of `withConnection`. */
export type ConnectionFlags = {
  readonly home?: string;
  readonly address?: string;
  readonly tokenFile?: string;
  readonly cacert?: string;
  /** Milliseconds. */
  readonly timeout?: number;
  /** With any of these, a command never asks for the passphrase of a locked vault. */
  readonly nonInteractive?: true;
  readonly json?: true;
  readonly quiet?: true;
};

/** Adds the flags that say where the server is and how long to wait for it. `help flags` describes them. */
export function withConnection(command: Command): Command {
  const present = command.options.map(({ long }) => long);
  for (const option of connectionOptions()) {
    if (!present.includes(option.long)) command.addOption(option.hideHelp());
  }
  return command.addHelpText("after", connectionHelp);
}

const connectionHelp = "\nconnection flags (--home, --address, …): strongroom help flags";

/** Returns whether an address was given: the server may then run on another machine. */
export function namesServer({ address }: ConnectionFlags): boolean {
  return Boolean(address ?? process.env["STRONGROOM_ADDRESS"]);
}

export function withHome(command: Command): Command {
  return command.addOption(homeOption());
}

/**
 * Runs `work` with a client, then closes its connections. On a terminal, the client asks for the passphrase of a locked
 * vault. @throws CommandFailure
 */
export async function withClient<T>(
  flags: ConnectionFlags,
  work: (client: StrongroomClient) => Promise<T>,
): Promise<T> {
  const { home, address, tokenFile, cacert: certificateFile, timeout: timeoutMs } = flags;
  const isSilent = flags.nonInteractive || flags.json || flags.quiet;
  const Client = isSilent ? StrongroomClient : UnlockingClient;
  const onTokenExpiring = flags.quiet ? undefined : warnOfEnd;
  const client = new Client({ home, address, tokenFile, certificateFile, timeoutMs, onTokenExpiring });
  try {
    return await work(client);
  } catch (error) {
    throw error instanceof StrongroomError ? await failureOf(error, client) : error;
  } finally {
    await client.close();
  }
}

function warnOfEnd(expiresAt: Date): void {
  const remedy = "renew it with the root token:  strongroom token rotate NAME";
  process.stderr.write(`warning: this token ends at ${localMinute(expiresAt)}: ${remedy}\n`);
}

export const exits: Readonly<Record<ErrorCode, ExitName>> = {
  BAD_REQUEST: "usage",
  UNAUTHORIZED: "badToken",
  FORBIDDEN: "forbidden",
  VAULT_LOCKED: "locked",
  NOT_FOUND: "notFound",
  ALREADY_EXISTS: "conflict",
  PRECONDITION_FAILED: "conflict",
  RATE_LIMITED: "rateLimited",
  INTERNAL: "unexpected",
  INTEGRITY: "findings",
  UNAVAILABLE: "unexpected",
  UNREACHABLE: "unreachable",
  UNTRUSTED_CERTIFICATE: "untrusted",
  UNTRUSTED_HOME: "untrusted",
  PROTOCOL: "unexpected",
  TIMEOUT: "unreachable",
  ABORTED: "aborted",
};

/** Returns what to do next, where the server's message does not say it. */
function nextStep({ code, message }: StrongroomError): string {
  return code === "NOT_FOUND" && !message.includes(": ") ? "; strongroom ls  lists all secrets" : "";
}

/** Returns the failure to report for an error of the client. A locked vault may not exist yet, so this asks the server. */
export async function failureOf(
  error: StrongroomError | CommandFailure,
  client: StrongroomClient,
): Promise<CommandFailure> {
  if (error instanceof CommandFailure) return error;
  if (error.code === "VAULT_LOCKED") return (await isMissing(client)) ? noVaultYet() : locked();
  const exit = error.credential === "passphrase" ? "wrongPassphrase" : exits[error.code];
  return new CommandFailure(exit, printable(`${error.message}${nextStep(error)}`));
}

/** Returns the failure to report for an error of the vault itself, where the passphrase is the only credential. */
export function failureOfVault({ code, message }: VaultError): CommandFailure {
  return new CommandFailure(code === "UNAUTHORIZED" ? "wrongPassphrase" : exits[code], message);
}

export function noVaultYet(): CommandFailure {
  return new CommandFailure("notInitialized", "there is no vault yet: create one with  strongroom init");
}

function locked(): CommandFailure {
  return new CommandFailure("locked", "the vault is locked: unlock it with  strongroom unlock");
}

async function isMissing(client: StrongroomClient): Promise<boolean> {
  try {
    return !(await client.status()).initialized;
  } catch {
    return false;
  }
}
