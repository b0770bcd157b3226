/** Space that is left on the disk of a directory. */
import { statfs } from "node:fs/promises";

/** Below this, in bytes, a small secret and its audit record may not fit. */
const fewestBytes = 256 * 1024;
/** A write takes a temp file beside the file that it replaces, and may need new directories. */
const fewestFiles = 16;

/** Returns what the disk has too little of for a write; null when it has enough, or does not say. */
export async function missingDiskSpace(directory: string): Promise<string | null> {
  const disk = await statfs(directory).catch(() => null);
  if (disk === null) return null;
  if (disk.bavail * disk.bsize < fewestBytes) return `less than ${fewestBytes / 1024} KiB left`;
  return disk.files > 0 && disk.ffree < fewestFiles ? `room for fewer than ${fewestFiles} more files` : null;
}

export const diskSpaceRemedy = "free space on it, since writes fail until then";
