/** Owns a run: chosen scenarios one after another, each cleaned up after, and all of it also on Ctrl-C. */
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

/** Runs them; each outcome is handed out as soon as it is there. */
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

/** Stops and removes all that was started, however the work ends. */
export async function cleaningUp(work: () => Promise<void>): Promise<void> {
  let stopping: Promise<void> | null = null;
  const stop = () => {
    stopping ??= cleanUpTo(0).finally(() => process.exit(130));
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, stop);
  process.stdout.on("error", stop); // whoever read the tables has gone
  try {
    await work();
  } catch (error) {
    if (stopping === null) throw error; // otherwise it only says that what was measured has gone
  } finally {
    await (stopping ?? cleanUpTo(0));
  }
}
