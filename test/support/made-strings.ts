/** Strings that a piece of work makes of bytes: nothing wipes them. */
export function stringsMadeBy(work: () => unknown): readonly string[] {
  const original = Buffer.prototype.toString;
  const made: string[] = [];
  Buffer.prototype.toString = function (this: Buffer, ...args: Parameters<typeof original>): string {
    const text = original.apply(this, args);
    made.push(text);
    return text;
  };
  try {
    work();
  } finally {
    Buffer.prototype.toString = original;
  }
  return made;
}
