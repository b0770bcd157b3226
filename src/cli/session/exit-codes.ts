/** Exit codes of the command line: names, meanings, and the error that carries one. */

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

/** As shown in help and README. */
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
  findings: "doctor or audit found a problem, or a secret is damaged",
  aborted: "cancelled or interrupted",
  forbidden: "the token's scope does not cover this",
};

/** The code of a `--json` error: the exit code's name in capitals, as in `NOT_FOUND`. */
export function errorCodeOf(name: ExitName): string {
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

  constructor(exit: ExitName, message: string) {
    super(message);
    this.name = "CommandFailure";
    this.exit = exit;
  }
}
