/**
 * Owns what the benchmark learns from inside a process that it measures: which of its threads is what, and how long its
 * event loop was held up. Loaded with --require, and CommonJS, because it must run before Node's own loader has used
 * the thread pool: only then is every thread that is there V8's, and every one that the first use adds the pool's.
 */

type Question = { readonly ask: "threads" } | { readonly ask: "watch-delay" } | { readonly ask: "delay" };

const { existsSync, readdirSync, stat } = process.getBuiltinModule("node:fs");
const { dirname, join } = process.getBuiltinModule("node:path");
const { monitorEventLoopDelay } = process.getBuiltinModule("node:perf_hooks");

/** What the program would load first, were it not for the probe. */
const poolFile = join(dirname(process.argv[1] ?? ""), "thread-pool.cjs");
if (existsSync(poolFile)) require(poolFile);

const threads = (): number[] => readdirSync("/proc/self/task").map(Number);
const engine = threads().filter((thread) => thread !== process.pid);
stat("/", () => {}); // libuv starts its whole pool with the first task
const pool = threads().filter((thread) => thread !== process.pid && !engine.includes(thread));

const delay = monitorEventLoopDelay({ resolution: 1 });

function answer({ ask }: Question): object {
  if (ask === "threads") return { engine, pool };
  if (ask === "watch-delay") {
    delay.enable();
    delay.reset();
    return {};
  }
  delay.disable();
  return { p50: delay.percentile(50) / 1e6, p99: delay.percentile(99) / 1e6, max: delay.max / 1e6 };
}

process.on("message", (question: Question) => {
  if (typeof question.ask === "string") process.send?.({ answered: question.ask, ...answer(question) });
});

/** The benchmark has gone, however it ended: so do the processes that it started. */
process.on("disconnect", () => process.exit(0));
