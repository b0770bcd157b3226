/** A plain durable replace: temp file, write, fsync, close, rename, fsync of the directory. */
import { randomBytes } from "node:crypto";
import { open, rename } from "node:fs/promises";
import { dirname } from "node:path";

export async function replaceDurably(file: string, bytes: Uint8Array): Promise<void> {
  const temp = `${file}.${randomBytes(8).toString("hex")}`;
  await syncing(temp, "wx", (handle) => handle.writeFile(bytes));
  await rename(temp, file);
  await syncing(dirname(file), "r", async () => {});
}

type Handle = Awaited<ReturnType<typeof open>>;

async function syncing(path: string, flags: string, work: (handle: Handle) => Promise<void>): Promise<void> {
  const handle = await open(path, flags, 0o600);
  try {
    await work(handle);
    await handle.sync();
  } finally {
    await handle.close();
  }
}
