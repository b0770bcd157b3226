/** Entries that every import format is parsed into. */
import type { Custom } from "../../client/client.js";

/** Metadata stored with a value. */
export type Mark = {
  readonly type?: string | undefined;
  readonly description?: string | undefined;
  readonly expiresAt?: string | undefined;
  readonly custom?: Custom | undefined;
};

export type ImportEntry = Mark & {
  readonly path: string;
  readonly value: string;
  /** The value is base64 of a binary value. */
  readonly encoding?: "base64" | undefined;
  /** Place in the source, for messages. */
  readonly origin: string;
  /** The item that this is a field of; one object for all fields. */
  readonly item?: Item | undefined;
};

/** Marks a secret for `strongroom otp`; the interface has no type for it. */
export const oneTimeMark = { type: "other", description: "one-time codes (TOTP): strongroom otp" } as const;

/** An item whose fields are secrets in one folder. */
export type Item = {
  /** The folder. */
  readonly path: string;
  /** When the item was created, in a form that sorts; empty when unknown. */
  readonly created: string;
  /** Empty when unknown. */
  readonly id: string;
  /** Place in the source, for messages. */
  readonly origin: string;
  /** The folder is not the item's own name. */
  readonly isRenamed: boolean;
};

/** An entry that cannot be stored. `damaged`: because the secret already at its path cannot be read. */
export type Refused = { readonly origin: string; readonly problem: string; readonly damaged?: true };

export type ParsedSource = {
  readonly found: readonly ImportEntry[];
  readonly refused: readonly Refused[];
  /** Parts of the source that a vault cannot hold. */
  readonly leftOut: readonly string[];
  /** Names parts that are stored in another way than they are written. */
  readonly remarks: readonly string[];
};

/** Joins what was read in parts. */
export function joinSources(parts: Iterable<Partial<ParsedSource>>): ParsedSource {
  const whole: { found: ImportEntry[]; refused: Refused[]; leftOut: string[]; remarks: string[] } = {
    ...{ found: [], refused: [], leftOut: [], remarks: [] },
  };
  for (const part of parts) {
    addAll(whole.found, part.found ?? []);
    addAll(whole.refused, part.refused ?? []);
    addAll(whole.leftOut, part.leftOut ?? []);
    addAll(whole.remarks, part.remarks ?? []);
  }
  return whole;
}

/** Like `push`, for any number: the arguments of a call are limited. */
function addAll<T>(list: T[], more: readonly T[]): void {
  for (const one of more) list.push(one);
}
