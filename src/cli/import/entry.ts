/** Entries that every import format is parsed into. */

/** What is stored with a value. */
export type Mark = {
  readonly type?: string | undefined;
  readonly description?: string | undefined;
  readonly expiresAt?: string | undefined;
};

export type ImportEntry = Mark & {
  readonly path: string;
  readonly value: string;
  /** The value is base64 of a binary value. */
  readonly encoding?: "base64" | undefined;
  /** Place in the source, for messages. */
  readonly origin: string;
  /** What this is a field of; one object for all fields. */
  readonly item?: Item | undefined;
};

/** Marks a secret for `strongroom otp`; the interface has no type for it. */
export const oneTimeMark = { type: "other", description: "one-time codes (TOTP): strongroom otp" } as const;

/** Returns whether a value says of itself that it makes one-time codes. */
export function isOneTimeUrl(value: string): boolean {
  return /^otpauth:\/\/totp\//i.test(value);
}

/** An item whose fields are secrets in one folder. */
export type Item = {
  /** The folder. */
  readonly path: string;
  /** When the item was created, in a form that sorts; empty when unknown. */
  readonly created: string;
  /** Empty when unknown. */
  readonly id: string;
};

/** An entry that cannot be stored. `damaged`: because the secret already at its path cannot be read. */
export type Refused = { readonly origin: string; readonly problem: string; readonly damaged?: true };

export type ParsedSource = {
  readonly found: readonly ImportEntry[];
  readonly refused: readonly Refused[];
  /** Parts of the source that a vault cannot hold. */
  readonly leftOut: readonly string[];
};

/** Joins names that people have typed to a path, without the white space around segments. */
export function pathOfNames(...names: readonly string[]): string {
  return names
    .join("/")
    .split("/")
    .map((segment) => segment.trim())
    .join("/");
}

/** As `push`, for any number: the arguments of a call are limited. */
export function addAll<T>(list: T[], more: readonly T[]): void {
  for (const one of more) list.push(one);
}
