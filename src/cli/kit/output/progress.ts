/** Long work: a progress bar on standard error, and Ctrl-C that lets it clean up. */
import type { Io } from "../io.js";

export interface Progress {
  /** Shows how much of all is done. */
  show(done: number, total: number): void;
  end(): void;
}

/** The unit counted. */
export type ProgressUnit = "items" | "bytes";

const [narrowest, widest] = [8, 30];
const usualColumns = 80;
const everyMs = 100;
const mebibyte = 2 ** 20;

export const noBar: Progress = { show() {}, end() {} };

export function progressBar(
  { stderr: stream, clock }: Pick<Io, "stderr" | "clock">,
  label: string,
  unit: ProgressUnit = "items",
): Progress {
  if (stream.isTTY !== true) return noBar;
  const begun = clock.elapsed();
  let drawnAt: number | null = null;
  return {
    show(done, total) {
      const now = clock.elapsed();
      if (drawnAt !== null && now - drawnAt < everyMs) return;
      drawnAt = now;
      const columns = (stream.columns || usualColumns) - 1; // a full line would move the cursor to the next one
      const text = amounts(unit, done, total, (drawnAt - begun) / 1000);
      const width = Math.min(widest, columns - `${label} [] ${text}`.length);
      const full = total === 0 ? width : Math.round((width * Math.min(done, total)) / total);
      const bar = width < narrowest ? "" : `[${"=".repeat(full)}${" ".repeat(width - full)}] `;
      stream.write(`\r${`${label} ${bar}${text}`.slice(0, columns)}\u001b[K`);
    },
    end() {
      if (drawnAt !== null) stream.write("\r\u001b[K");
    },
  };
}

/** A bar of its own for each phase. */
export function phasedBar<Phase extends string>(io: Io, chooseUnit: (phase: Phase) => ProgressUnit) {
  let current: { readonly phase: Phase; readonly bar: Progress } | null = null;
  const show = (phase: Phase, done: number, total: number): void => {
    if (current?.phase !== phase) {
      current?.bar.end();
      current = { phase, bar: progressBar(io, phase, chooseUnit(phase)) };
    }
    current.bar.show(done, total);
  };
  return { show, end: () => current?.bar.end() };
}

/** For example `1200/5000, 400/s, 0:10 left`; the rate only once there is one. */
function amounts(unit: ProgressUnit, done: number, total: number, seconds: number): string {
  const [size, digits, name] = unit === "bytes" ? [mebibyte, 1, " MiB"] : [1, 0, ""];
  const inUnit = (amount: number) => (amount / size).toFixed(digits);
  const rate = done / seconds;
  const speed = seconds >= 1 && done > 0 ? `, ${inUnit(rate)}${name}/s, ${clockTime((total - done) / rate)} left` : "";
  return `${inUnit(done)}/${inUnit(total)}${name}${speed}`;
}

function clockTime(seconds: number): string {
  const whole = Math.max(0, Math.ceil(seconds));
  const [minutes, hours] = [Math.floor(whole / 60) % 60, Math.floor(whole / 3600)];
  const padded = (part: number) => String(part).padStart(2, "0");
  return hours > 0 ? `${hours}:${padded(minutes)}:${padded(whole % 60)}` : `${minutes}:${padded(whole % 60)}`;
}

const endings = ["SIGINT", "SIGTERM"] as const;

export async function breakable<T>({ events }: Io, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const abort = () => controller.abort();
  for (const ending of endings) events.once(ending, abort);
  try {
    return await work(controller.signal);
  } finally {
    for (const ending of endings) events.off(ending, abort);
  }
}
