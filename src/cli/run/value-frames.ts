/** Values on a pipe between two of our processes: the length as four bytes, big-endian, then the bytes. */

export function frame(value: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(Buffer.byteLength(value));
  return Buffer.concat([length, Buffer.from(value)]);
}

/** Returns the whole values among the bytes. */
export function unframe(bytes: Buffer): Buffer[] {
  const values: Buffer[] = [];
  let at = 0;
  while (bytes.length - at >= 4) {
    const end = at + 4 + bytes.readUInt32BE(at);
    if (end > bytes.length) break; // the writer was ended
    values.push(bytes.subarray(at + 4, end));
    at = end;
  }
  return values;
}
