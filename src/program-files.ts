/** Files of the built program. This one is in `dist/src` as compiled, and in `dist/program` as built. */
import { fileURLToPath } from "node:url";

const dist = new URL("../", import.meta.url);

/** The package, with the list of its files. */
export const packageDirectory = fileURLToPath(new URL("../", dist));

/**
 * All code of the key worker's thread, in one file, which each new thread loads faster than modules. DANGER: it
 * must not be an ES module. A thread that is ended while `require` links one aborts the process (Node 20.20).
 */
export const keyWorkerFile = new URL("workers/key-worker.cjs", dist).href;

/** The broker's thread; CommonJS for the same reason. */
export const brokerThreadFile = new URL("program/broker-thread.cjs", dist);

export const credentialsThreadFile = new URL("program/socket-thread.cjs", dist);

/** The `strongroom` command. */
export const entryFile = fileURLToPath(new URL("program/entry.cjs", dist));

/** The background process of `--copy`. */
export const clipboardClearFile = fileURLToPath(new URL("program/clipboard-clear.cjs", dist));
