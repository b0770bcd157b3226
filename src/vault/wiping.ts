/** Wiping of request bodies, whatever becomes of the request. */

/** Wipes a body that was shared with the key worker, or did not reach it; one that was moved has no bytes left here. */
export async function wipingAfter<T>(body: Uint8Array, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } finally {
    if (body.byteLength > 0) body.fill(0);
  }
}
