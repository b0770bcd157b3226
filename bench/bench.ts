/** Entry point of `npm run bench`: runs the scenarios and prints their results as text, Markdown or JSON. */
import { arch, cpus } from "node:os";
import { type Options, readOptions, UsageError, usage } from "./options.js";
import type { Outcome } from "./outcome.js";
import { cleaningUp, run } from "./run-scenarios.js";
import { scenarios } from "./scenarios/all.js";
import { markdownOutcome, showOutcome, showPromises } from "./tables.js";
import { canMeasure } from "./usage.js";

try {
  const options = readOptions(process.argv.slice(2));
  if (options === null) process.stdout.write(`${usage}\n${listed()}`);
  else if (!canMeasure()) fail("the benchmark reads CPU and memory from /proc, which only Linux has");
  else await cleaningUp(() => bench(options));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  fail(`${error.message}\n\n${usage}`);
}

async function bench(options: Options): Promise<void> {
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim()}, ${arch()}, Node ${process.version}`;
  const outcomes: Outcome[] = [];
  const show = options.markdown ? markdownOutcome : showOutcome;
  if (!options.json) process.stdout.write(`${machine}; medians of ${options.rounds} rounds of ${options.seconds} s\n`);
  for await (const outcome of run(options)) {
    outcomes.push(outcome);
    if (!options.json) process.stdout.write(show(outcome));
  }
  if (options.json) process.stdout.write(`${JSON.stringify({ machine, options, outcomes }, null, 2)}\n`);
  else process.stdout.write(showPromises(outcomes, options.markdown));
}

function listed(): string {
  return scenarios.map(({ name, about }) => `  ${name.padEnd(18)}${about}\n`).join("");
}

function fail(message: string): void {
  process.stderr.write(`${message}\n`);
  process.exitCode = 2;
}
