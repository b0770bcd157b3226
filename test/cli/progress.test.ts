/** Progress bar: amounts, rate and time left, on terminals only. */
import { expect } from "chai";
import type { OutputStream } from "../../src/cli/kit/io.js";
import { type ProgressUnit, progressBar } from "../../src/cli/kit/output/progress.js";
import { FakeClock } from "../support/manual-clock.js";

/** Returns the text of a bar that began at 0 and is updated at `ms`. */
function shownAt(ms: number, done: number, total: number, unit: ProgressUnit = "items", isTTY = true): string {
  return lineAt(ms, done, total, unit, isTTY).replace(/\[.*\] /, "");
}

/** The whole line. */
function lineAt(ms: number, done: number, total: number, unit: ProgressUnit, isTTY = true, columns = 80): string {
  const clock = new FakeClock();
  let written = "";
  const stream = {
    isTTY,
    columns,
    write(text: string) {
      written += text;
      return true;
    },
  };
  const bar = progressBar(
    { stderr: stream as Pick<OutputStream, "isTTY" | "columns" | "write"> as OutputStream, clock },
    "saving",
    unit,
  );
  clock.advance(ms);
  bar.show(done, total);
  return written.replaceAll("\r", "").replaceAll("\u001b[K", "");
}

describe("a progress bar", () => {
  const rows: readonly (readonly [string, Parameters<typeof shownAt>, string])[] = [
    ["shows no rate in the first second", [900, 300, 1000], "saving 300/1000"],
    ["shows rate and time left", [2000, 400, 1000], "saving 400/1000, 200/s, 0:03 left"],
    ["shows hours", [10_000, 10, 10_000], "saving 10/10000, 1/s, 2:46:30 left"],
    ["shows bytes as MiB", [4000, 2 ** 21, 2 ** 22, "bytes"], "saving 2.0/4.0 MiB, 0.5 MiB/s, 0:04 left"],
    ["shows nothing left at the end", [2000, 1000, 1000], "saving 1000/1000, 500/s, 0:00 left"],
    ["shows nothing outside of a terminal", [2000, 400, 1000, "items", false], ""],
  ];
  for (const [rule, args, wanted] of rows) {
    it(rule, () => expect(shownAt(...args)).to.equal(wanted));
  }

  for (const columns of [200, 80, 60, 40, 24]) {
    it(`leaves the last of ${columns} columns free, so that it stays on one line`, () => {
      const line = lineAt(2000, 41 * 2 ** 20, 135 * 2 ** 20, "bytes", true, columns);
      expect(line.length).to.be.below(columns);
      expect(line).to.match(columns < 40 ? /^saving 41\.0\/135\.0 / : /^saving (?:\[=+ +\] )?41\.0\/135\.0 MiB/);
    });
  }
});
