/** Entries that every import format is parsed into. */

export type ImportEntry = {
  readonly path: string;
  readonly value: string;
  readonly type?: string | undefined;
  readonly description?: string | undefined;
  /** Place in the source, for messages. */
  readonly origin: string;
  /** What this is a field of; one object for all fields. */
  readonly item?: Item | undefined;
};

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
