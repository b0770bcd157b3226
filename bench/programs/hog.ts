/** A process that keeps one CPU busy until it is stopped: the baseline for derivations. */
import { createHash } from "node:crypto";

process.send?.({ ready: true });

const bytes = new Uint8Array(2 ** 20);

/** Works in slices, so that it notices when the benchmark ends. */
function work(): void {
  createHash("sha256").update(bytes).digest();
  setImmediate(work);
}

work();
