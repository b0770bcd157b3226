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
