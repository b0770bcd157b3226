/** State that the key worker's operations share, and the shape of an operation. */
import type { SealingKey } from "../crypto/blob.js";
import type { Keyring } from "../crypto/keyring.js";
import type {
  Operation,
  Refusal,
  RequestOf,
  ResultOf,
  WorkerSettings,
  WriteKind,
  WriteOf,
  WriteResult,
} from "../protocol.js";
import type { TransitState } from "../transit/state.js";
import type { Turns } from "../turns.js";
import type { ComputedTokens } from "../uses/tokens.js";
import type { BodyReaders } from "./request-bodies.js";

export type Context = {
  readonly settings: WorkerSettings;
  readonly keyring: Keyring;
  readonly readers: BodyReaders;
  /** Operations that derive a key or change the header take turns. */
  readonly turns: Turns;
  readonly transit: TransitState;
  readonly computed: ComputedTokens;
  /** When the message was sent, in milliseconds since 1970. */
  readonly now: number;
};

type Operate<O extends Operation> = (context: Context, request: RequestOf<O>) => ResultOf<O> | Promise<ResultOf<O>>;

/** One function for each row of the protocol: a missing one does not compile. `open` is in opens.ts: its message is packed. */
export type OperationTable = { readonly [O in Exclude<Operation, "open">]: Operate<O> };

/** Inputs of a write; `previous` and `reread`: see the operation `write`. */
export type Writing = Pick<Context, "settings" | "readers" | "computed" | "now"> & {
  readonly key: SealingKey;
  readonly path: string;
  readonly previous: Uint8Array | null;
  readonly reread: boolean;
};

type Maker<K extends WriteKind> = (writing: Writing, write: WriteOf<K>) => WriteResult | Refusal;

/** One function for each kind of write: a missing one does not compile. */
export type MakerTable = { readonly [K in WriteKind]: Maker<K> };
