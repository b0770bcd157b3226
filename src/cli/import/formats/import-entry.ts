/** Owns what every kind of file that can be imported is read into, and small means to look at data of unknown shape. */

export type ImportEntry = {
  readonly path: string;
  readonly value: string;
  readonly type?: string | undefined;
  readonly description?: string | undefined;
  /** Where in the source it is, for messages. */
  readonly origin: string;
};

/** It cannot be stored as it is; the rest can. `damaged`: it is what is stored at its path that cannot be read. */
export type Refused = { readonly origin: string; readonly problem: string; readonly damaged?: true };

export type ParsedSource = {
  readonly found: readonly ImportEntry[];
  readonly refused: readonly Refused[];
  /** What the source has and a vault has no place for. */
  readonly leftOut: readonly string[];
};

/** A path made of names that people have typed: white space around a segment is theirs and not the name's. */
export function pathOfNames(...names: readonly string[]): string {
  return names
    .join("/")
    .split("/")
    .map((segment) => segment.trim())
    .join("/");
}
