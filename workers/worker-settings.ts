/** Settings of the key worker, and what its thread is started with. */

/**
 * Earlier versions that a put keeps: at most `keepVersions` and, except for the newest, within `keepVersionBytes` of
 * ciphertext in all.
 */
export type HistoryLimits = { readonly keepVersions: number; readonly keepVersionBytes: number };

/** Passed once, when a thread starts. */
export type WorkerSettings = HistoryLimits & {
  readonly maxValueBytes: number;
  /** DANGER: for tests alone. Headers with a scrypt cost down to this are accepted; absent, 14 is the minimum. */
  readonly minScryptLogN?: number;
};

/**
 * How many locks the main thread has sent, one number in memory that both threads see: so the key worker knows of a lock
 * before the messages in front of it are read.
 */
export type SentLocks = Int32Array<SharedArrayBuffer>;

/** The start of a thread: its end of the message channel, its settings and its locks. */
export type WorkerStart<Port> = {
  readonly port: Port;
  readonly settings: WorkerSettings;
  readonly sentLocks: SentLocks;
};
