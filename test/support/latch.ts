/** Owns a promise that ends when a test says so. */
export type Latch = {
  readonly passed: Promise<void>;
  readonly open: () => void;
  /** Whoever waits meets an I/O error. */
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
