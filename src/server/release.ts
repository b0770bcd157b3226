/** Release of what was opened before, when the next step of the start fails. */

export async function openOrRelease<T>(opened: { close(): Promise<void> }, next: () => Promise<T>): Promise<T> {
  try {
    return await next();
  } catch (error) {
    await opened.close();
    throw error;
  }
}
