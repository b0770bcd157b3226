/** Entries that every import format is parsed into. */

export type ImportEntry = {
  readonly path: string;
  readonly value: string;
  readonly type?: string | undefined;
  readonly description?: string | undefined;
  /** Place in the source, for messages. */
  readonly origin: string;
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
