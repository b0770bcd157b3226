/** Copies of secret bytes that leave none of them in the processor's vector registers. */

/** Public bytes: a copy of this length passes through every register that a shorter or longer one uses. */
const zeros = new Uint8Array(new ArrayBuffer(1024));
const ignored = new Uint8Array(new ArrayBuffer(zeros.length));

/**
 * Overwrites the vector registers that a copy uses. DANGER: V8 saves all of them in memory that it frees unwiped whenever it
 * deoptimizes a function, 16 bytes of each register on Node 24 and 8 on Node 20; a long copy leaves secret bytes in nine.
 */
export function clearRegisters(): void {
  ignored.set(zeros);
}

/** Copies secret bytes to `at` in `target`, as `target.set(source, at)` does. */
export function copySecret(target: Uint8Array, source: Uint8Array, at = 0): void {
  target.set(source, at);
  clearRegisters();
}
