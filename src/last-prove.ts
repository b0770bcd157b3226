/** The result of the last `strongroom prove` of this server, which prove leaves in the home. */
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";

export type LastProve = {
  readonly at: string;
  readonly verdict: "holds" | "fails" | "unknown";
  readonly checks: number;
  readonly failed: number;
};

const maxBytes = 1024;
const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Null when there is none, or it is not what prove writes. */
export async function readLastProve(home: string): Promise<LastProve | null> {
  const file = join(home, "last-prove.json");
  try {
    const { at, verdict, checks, failed } = JSON.parse(await readPlain(file)) as Partial<LastProve>;
    const isVerdict = verdict === "holds" || verdict === "fails" || verdict === "unknown";
    if (typeof at !== "string" || !isoTime.test(at) || !isVerdict) return null;
    return isCount(checks) && isCount(failed) ? { at, verdict, checks, failed } : null;
  } catch {
    return null;
  }
}

/** @throws an error for a link, for what is no plain file, and for a long one; none of them delays it */
async function readPlain(file: string): Promise<string> {
  const handle = await open(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    const found = await handle.stat();
    if (!found.isFile() || found.size > maxBytes) throw new Error("prove does not write such a file");
    return await handle.readFile("utf8");
  } finally {
    await handle.close();
  }
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
