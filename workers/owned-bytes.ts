/** Types of the bytes that the threads own and wipe. */

/** Bytes whose memory is ours alone: not on V8's heap, not in Node's shared pool. They can be moved and wiped. */
export type Bytes = Uint8Array<ArrayBuffer>;

/**
 * A body with a passphrase or of a batch, in memory that both threads see, so that either can wipe it whatever becomes of
 * the other. A body that is moved or copied is lost unwiped when its message meets a thread that has crashed.
 */
export type SharedBytes = Uint8Array<SharedArrayBuffer>;
