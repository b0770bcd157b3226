import { stat } from "node:fs/promises";

/** A promise that a test settles. */
export type Latch = {
  readonly passed: Promise<void>;
  readonly open: () => void;
  /** Rejects with EIO. */
  readonly fail: () => void;
};

export function closedGate(): Latch {
  let open = () => {};
  let fail = () => {};
  const passed = new Promise<void>((resolve, reject) => {
    open = resolve;
    fail = () => reject(Object.assign(new Error("EIO"), { code: "EIO" }));
  });
  return { passed, open, fail };
}

/** Lets what is ready run, in the event loop and in the thread pool, without waiting for time. */
export async function turns(count = 30): Promise<void> {
  for (let i = 0; i < count; i++) {
    await stat("/");
    await new Promise((resolve) => setImmediate(resolve));
  }
}
