/**
 * Kinds of threads inside a measured process. Loaded with --require, and CommonJS, because it must run before Node's own
 * loader has used the thread pool: until then every thread is V8's, and threads that the first use adds are the pool's.
 */

type Question = { readonly ask: string };

const { existsSync, readdirSync, stat } = process.getBuiltinModule("node:fs");
const { dirname, join } = process.getBuiltinModule("node:path");

/** The program loads it first; the probe must come before. */
const poolFile = join(dirname(process.argv[1] ?? ""), "thread-pool.cjs");
if (existsSync(poolFile)) require(poolFile);

const threads = (): number[] => readdirSync("/proc/self/task").map(Number);
const engine = threads().filter((thread) => thread !== process.pid);
stat("/", () => {}); // the first task starts libuv's whole pool
const pool = threads().filter((thread) => thread !== process.pid && !engine.includes(thread));

process.on("message", ({ ask }: Question) => {
  if (ask === "threads") process.send?.({ engine, pool });
});

/** Processes of the benchmark end with it, however it ends. */
process.on("disconnect", () => process.exit(0));
