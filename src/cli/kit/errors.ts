/** Exit codes of the command line, and the failure that each error of the client or the vault becomes. */
import type { ErrorCode, StrongroomClient, StrongroomError } from "../../client/client.js";
import { systemCode, type VaultError } from "../../errors.js";
import { failureReason } from "../../files/file-problem.js";
import { readCommit, readManifest } from "../../manifest.js";
import { printable } from "./output.js";

/** The reason of a failed system call, as a code and in words. */
export { failureReason, systemCode };

/** DANGER: scripts rely on the numbers. */
export const exitCodes = {
  ok: 0,
  unexpected: 1,
  usage: 2,
  locked: 3,
  notFound: 4,
  badToken: 5,
  rateLimited: 6,
  conflict: 7,
  notInitialized: 8,
  wrongPassphrase: 9,
  unreachable: 10,
  untrusted: 11,
  findings: 12,
  aborted: 13,
  forbidden: 14,
} as const;

export type ExitName = keyof typeof exitCodes;

/** Meanings of the exit codes, as shown in help and README. */
export const exitMeanings: { readonly [N in ExitName]: string } = {
  ok: "success",
  unexpected: "any other failure",
  usage: "invalid command, flag, argument or setting",
  locked: "the vault is locked",
  notFound: "secret not found",
  badToken: "missing or invalid bearer token",
  rateLimited: "too many failed attempts: wait before the next one",
  conflict: "conflict: the target already exists or is in use",
  notInitialized: "no vault yet",
  wrongPassphrase: "wrong passphrase",
  unreachable: "the server cannot be reached",
  untrusted: "the server's certificate is not trusted",
  findings: "doctor, audit, check, scan or prove found a problem; a secret is damaged",
  aborted: "cancelled or interrupted; prove or scan could not look everywhere",
  forbidden: "the token's scope does not cover this",
};

/** The code of a `--json` error that the API has none for: the exit code's name in capitals, as in `NOT_INITIALIZED`. */
export function exitErrorCode(name: ExitName): string {
  return name.replace(/[A-Z]/g, "_$&").toUpperCase();
}

export function exitCodesText(): string {
  const rows = Object.entries(exitCodes).map(
    ([name, code]) => `  ${String(code).padStart(2)}  ${exitMeanings[name as ExitName]}\n`,
  );
  return `exit codes:\n${rows.join("")}`;
}

/** Ends a command; the message says what is wrong and what to do. */
export class CommandFailure extends Error {
  readonly exit: ExitName;
  /** For `--json`: the API's code, where the server gave one. */
  readonly code: string;

  constructor(exit: ExitName, message: string, code: string = exitErrorCode(exit)) {
    super(message);
    this.name = "CommandFailure";
    this.exit = exit;
    this.code = code;
  }
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
  if (code !== "NOT_FOUND" || message.includes(": ")) return "";
  const isOfKey = message.startsWith("there is no transit key ");
  return isOfKey ? "; strongroom transit ls  lists them" : "; strongroom ls  lists all secrets";
}

/** Returns the failure to report for an error of the client. A locked vault may not exist yet, so this asks the server. */
export async function clientFailure(
  error: StrongroomError | CommandFailure,
  client: StrongroomClient,
): Promise<CommandFailure> {
  if (error instanceof CommandFailure) return error;
  if (error.code === "VAULT_LOCKED") return (await isMissing(client)) ? noVaultYet() : locked();
  const exit = error.credential === "passphrase" ? "wrongPassphrase" : exits[error.code];
  const other = fromOtherVersions.has(error.code) ? await otherServer(client, error) : "";
  return new CommandFailure(exit, printable(`${error.message}${nextStep(error)}${other}`), error.code);
}

/** Codes that a server gives for an endpoint or member that only later versions have. */
const fromOtherVersions: ReadonlySet<string> = new Set(["BAD_REQUEST", "NOT_FOUND", "PROTOCOL"]);

/** Returns what to say where the server is older than this command, or another build of the same version; else nothing. */
async function otherServer(client: StrongroomClient, error: StrongroomError): Promise<string> {
  const own = readManifest().version;
  const { version } = await client.status().catch(() => ({ version: own }));
  const order = version.localeCompare(own, "en", { numeric: true });
  if (order > 0) return "";
  const difference =
    order < 0
      ? `the server is version ${version}, older than this command (${own})`
      : await otherBuild(client, error, version);
  return difference === null ? "" : `; ${difference}: restart it with  strongroom up --restart`;
}

/** Returns how the server's build differs, where both builds know their commits; asks only if the request was not understood. */
async function otherBuild(
  client: StrongroomClient,
  { code, message }: StrongroomError,
  version: string,
): Promise<string | null> {
  const own = readCommit();
  if (own === null || (code === "NOT_FOUND" && !message.startsWith(noEndpoint))) return null;
  const document = await client.openapi().catch(() => null);
  const { "x-commit": commit } = { ...(document?.["info"] as { readonly "x-commit"?: unknown } | undefined) };
  if (typeof commit !== "string" || commit === own) return null;
  return `the server is another build of version ${version} (commit ${commit}, this command: ${own})`;
}

const noEndpoint = "there is no such endpoint";

/** Returns the failure to report for an error of the vault itself, where the passphrase is the only credential. */
export function failureOfVault({ code, message }: VaultError): CommandFailure {
  return new CommandFailure(code === "UNAUTHORIZED" ? "wrongPassphrase" : exits[code], message, code);
}

export function noVaultYet(): CommandFailure {
  return new CommandFailure("notInitialized", "there is no vault yet: create one with  strongroom init");
}

function locked(): CommandFailure {
  return new CommandFailure("locked", "the vault is locked: unlock it with  strongroom unlock", "VAULT_LOCKED");
}

async function isMissing(client: StrongroomClient): Promise<boolean> {
  try {
    return !(await client.status()).initialized;
  } catch {
    return false;
  }
}
