/** Owns what doctor can find: the closed list of codes, and what each means to people. */

/** As help, README and `--json` name them. */
export const findingCodes = {
  "foreign-owner": "it belongs to another user",
  "wrong-mode": "others may use it, or its owner may not",
  symlink: "a link stands where a file or directory of ours should",
  "wrong-kind": "neither a plain file nor a directory, or one instead of the other",
  unreadable: "the system cannot read it",
  "stray-temp": "a temp file that a crash left",
  "stray-directory": "an empty directory, or one that a broken-off init, backup or restore left",
  "foreign-file": "not a file or directory of ours",
  "foreign-name": "the name of a file or directory in the tree is not one that we give",
  "forbidden-path": "the name stands for a path that no secret may have",
  "duplicate-secret": "a second file for one secret",
  "current-missing": "nothing says which vault is in force",
  "current-damaged": "`current` does not name a vault, or names one that is not there",
  "header-missing": "the vault's header is missing",
  "header-damaged": "the vault's header is damaged, or from a later version",
  "secrets-missing": "the directory of the secrets is missing",
  "blob-damaged": "a secret's file is not a blob, is cut, or is from a later version",
  "secret-damaged": "a secret does not open with the vault's key: damaged, moved or foreign",
  "token-damaged": "the token file does not hold a token",
  "certificate-damaged": "certificate or key cannot be read, or one of them is missing",
  "certificate-mismatch": "the key is not that of the certificate",
  "certificate-expired": "the certificate has expired, is not valid yet, or has less than 30 days left",
  "certificate-names": "the certificate does not cover localhost and 127.0.0.1",
} as const;

export type FindingCode = keyof typeof findingCodes;

/** How `--fix` mends a finding. */
export type Fix = {
  /** What was done, for people. */
  readonly did: string;
  /** It does not disturb a running server. */
  readonly whileServed: boolean;
  readonly run: () => Promise<unknown>;
};

export type Finding = {
  readonly code: FindingCode;
  readonly path: string;
  /** What is wrong. */
  readonly message: string;
  /** What to do. */
  readonly remedy: string;
  /** Null: only a person can judge what is right. */
  readonly fix: Fix | null;
};
