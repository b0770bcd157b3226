/** The result of the last `strongroom prove` of this server, which prove leaves in the home. */
import { readFile, stat } from "node:fs/promises";
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
    if ((await stat(file)).size > maxBytes) return null;
    const { at, verdict, checks, failed } = JSON.parse(await readFile(file, "utf8")) as Partial<LastProve>;
    const isVerdict = verdict === "holds" || verdict === "fails" || verdict === "unknown";
    if (typeof at !== "string" || !isoTime.test(at) || !isVerdict) return null;
    return isCount(checks) && isCount(failed) ? { at, verdict, checks, failed } : null;
  } catch {
    return null;
  }
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
