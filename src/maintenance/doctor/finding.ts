/** Findings of doctor: the closed list of codes with their meanings. */

/** Used in help, documentation and `--json`. */
export const findingCodes = {
  "foreign-owner": "belongs to another user, or to an untrusted role of the database",
  "wrong-mode": "accessible to others, or not to its owner",
  symlink: "a symbolic link in place of a file or directory",
  "wrong-kind": "not a plain file, or not a directory, where one is expected",
  unreadable: "cannot be read",
  "disk-full": "the disk has no space for a write",
  "stray-temp": "a temp file left by a crash",
  "stray-directory": "an empty directory, or one left by an interrupted init, backup or restore",
  "foreign-file": "not a file or directory of Strongroom",
  "foreign-name": "a file or directory name that the server never writes",
  "forbidden-path": "the file name of a path that is not allowed for secrets",
  "duplicate-secret": "a second file for one secret",
  "current-missing": "nothing says which vault is the current one",
  "current-damaged": "`current` names no vault, or one that does not exist",
  "header-missing": "the vault's header is missing",
  "header-damaged": "the vault's header is damaged, or of a later version",
  "journal-damaged": "the journal of an interrupted batch of changes is damaged",
  "secrets-missing": "the directory of the secrets is missing",
  "blob-damaged": "not a valid sealed secret: corrupt, truncated, or written by a newer version",
  "secret-damaged": "a secret does not open with the vault's key: damaged, moved or foreign",
  "foreign-row": "rows of a database that no server has written",
  "count-wrong": "the stored count of secrets does not match the rows",
  "tokens-damaged": "the document of the client tokens is damaged, or of a later version",
  "token-refused": "a client token that was added or changed outside of the server; it is not valid",
  "audit-changed": "the audit log was changed, cut or forged, or a file of it is missing",
  "token-damaged": "the token file does not contain a token",
  "certificate-damaged": "certificate or key is invalid, or one of them is missing",
  "certificate-mismatch": "the key does not match the certificate",
  "certificate-expired":
    "the certificate has expired, is not valid yet, or has less than 30 days left (14 where it is not in the home)",
  "certificate-names": "the certificate does not cover localhost and 127.0.0.1",
} as const;

export type FindingCode = keyof typeof findingCodes;

/** How `--fix` repairs a finding. */
export type Fix = {
  /** Description of the fix, for people. */
  readonly did: string;
  /** Safe while a server runs. */
  readonly whileServed: boolean;
  readonly run: () => Promise<unknown>;
};

export type Finding = {
  readonly code: FindingCode;
  readonly path: string;
  /** Description of the problem. */
  readonly message: string;
  /** Instruction that fixes it. */
  readonly remedy: string;
  /** Null: only a person can decide. */
  readonly fix: Fix | null;
};
