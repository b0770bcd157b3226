/** Owns the command line's exit codes: their names, what they mean to people, and the error that carries one. */

/** Stable: scripts rely on the numbers. */
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
} as const;

export type ExitName = keyof typeof exitCodes;

/** As help and README show them. */
export const exitMeanings: { readonly [N in ExitName]: string } = {
  ok: "done",
  unexpected: "a failure that has no code of its own",
  usage: "the command, a flag or a setting is not valid",
  locked: "the vault is locked",
  notFound: "there is no such secret",
  badToken: "the bearer token is missing or wrong",
  rateLimited: "too many failures: wait",
  conflict: "it exists already, or the two do not go together",
  notInitialized: "there is no vault yet",
  wrongPassphrase: "the passphrase is wrong",
  unreachable: "the server does not answer",
  untrusted: "the server's certificate is not the one that is trusted",
  findings: "doctor found something wrong, or a secret is damaged",
  aborted: "broken off by the user",
};

export function exitCodesText(): string {
  const rows = Object.entries(exitCodes).map(
    ([name, code]) => `  ${String(code).padStart(2)}  ${exitMeanings[name as ExitName]}\n`,
  );
  return `exit codes:\n${rows.join("")}`;
}

/** A command cannot go on; the message, written for people, says what was wrong and what to do. */
export class CommandFailure extends Error {
  readonly exit: ExitName;

  constructor(exit: ExitName, message: string) {
    super(message);
    this.name = "CommandFailure";
    this.exit = exit;
  }
}
