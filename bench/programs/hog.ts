/** A process that keeps one CPU busy, while it is not stopped: the neighbour that derivations are compared with. */
import { createHash } from "node:crypto";

process.send?.({ ready: true });

const bytes = new Uint8Array(2 ** 20);

/** In turns, so that it still hears when the benchmark goes. */
function work(): void {
  createHash("sha256").update(bytes).digest();
  setImmediate(work);
}

work();
