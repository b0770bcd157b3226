/** Progress bar on standard error, only on a terminal; cleared when the work is done. */

export interface Progress {
  /** Draws how much of `total` is done. */
  show(done: number, total: number): void;
  end(): void;
}

const width = 30;
const everyMs = 100;

export function progressBar(label: string, stream: NodeJS.WriteStream = process.stderr): Progress {
  if (stream.isTTY !== true) return { show() {}, end() {} };
  let drawnAt = 0;
  return {
    show(done, total) {
      if (Date.now() - drawnAt < everyMs) return;
      drawnAt = Date.now();
      const full = total === 0 ? width : Math.round((width * done) / total);
      stream.write(`\r${label} [${"=".repeat(full)}${" ".repeat(width - full)}] ${done}/${total}`);
    },
    end() {
      if (drawnAt > 0) stream.write("\r\u001b[K");
    },
  };
}
