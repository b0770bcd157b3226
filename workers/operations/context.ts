/** What the key worker's operations share, and the shape of an operation. */
import type { Keyring } from "../crypto/keyring.js";
import type { Operation, RequestOf, ResultOf, WorkerSettings } from "../protocol.js";
import type { TransitState } from "../transit/state.js";
import type { Turns } from "../turns.js";
import type { BodyReaders } from "./request-bodies.js";

export type Context = {
  readonly settings: WorkerSettings;
  readonly keyring: Keyring;
  readonly readers: BodyReaders;
  /** Operations that derive a key or change the header take turns. */
  readonly turns: Turns;
  readonly transit: TransitState;
  /** When the message was sent, in milliseconds since 1970. */
  readonly now: number;
};

type Operate<O extends Operation> = (context: Context, request: RequestOf<O>) => ResultOf<O> | Promise<ResultOf<O>>;

/** One function for each row of the protocol: a missing one does not compile. `open` is in opens.ts: its message is packed. */
export type OperationTable = { readonly [O in Exclude<Operation, "open">]: Operate<O> };
