/** A run of the chosen scenarios in sequence, with clean-up after each and on Ctrl-C. */
import { cleanUpMark, cleanUpTo } from "../test/support/clean-up.js";
import { type Options, UsageError } from "./options.js";
import type { Outcome } from "./outcome.js";
import { Bench, type Scenario } from "./scenario.js";
import { scenarios } from "./scenarios/all.js";

export function chosen({ only }: Options): readonly Scenario[] {
  const unknown = only?.filter((name) => !scenarios.some((scenario) => scenario.name === name)) ?? [];
  if (unknown.length > 0) throw new UsageError(`there is no scenario ${unknown.join(", ")}: --list names them`);
  return scenarios.filter(({ name }) => only?.includes(name) ?? true);
}

/** Runs them and yields each outcome as it is found. */
export async function* run(options: Options): AsyncGenerator<Outcome> {
  const wanted = chosen(options);
  const bench = await Bench.prepare(
    options,
    wanted.flatMap((scenario) => scenario.vaults(options)),
  );
  for (const scenario of wanted) {
    const mark = cleanUpMark();
    yield* await scenario.run(bench);
    await cleanUpTo(mark);
  }
}

/** Does the work, and then stops and removes everything that it started. */
export async function cleaningUp(work: () => Promise<void>): Promise<void> {
  let stopping: Promise<void> | null = null;
  const stop = () => {
    stopping ??= cleanUpTo(0).finally(() => process.exit(130));
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, stop);
  process.stdout.on("error", stop); // the reader of the tables has gone
  try {
    await work();
  } catch (error) {
    if (stopping === null) throw error; // after an interruption the error is only that a process has gone
  } finally {
    await (stopping ?? cleanUpTo(0));
  }
}
