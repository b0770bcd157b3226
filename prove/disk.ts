/** Search for secrets in the files of a home, and in the server's log where that is a file. */
import { closeSync, lstatSync, openSync, readdirSync, readlinkSync, readSync } from "node:fs";
import { join } from "node:path";
import type { Check } from "./report.js";
import { type Secret, SecretSearch } from "./search.js";
import { shown } from "./surroundings.js";

const chunkBytes = 4 * 2 ** 20;
/** A secret in its longest form may lie across two chunks. */
const overlapBytes = 4096;

/**
 * Searches the home's files, the server's log, and heap snapshots and core dumps in its directory.
 * @param secrets - values, passphrase and keys; those of one name are reported together
 */
export function checkDisk(home: string, pid: number | null, secrets: readonly Secret[]): Check[] {
  const search = new SecretSearch(secrets.map((secret) => ({ ...secret, pieceBytes: 0 })));
  const found = new Map(secrets.map(({ name }) => [name, new Set<string>()]));
  for (const file of [...filesIn(home), ...filesOfProcess(pid)]) {
    for (const name of namesIn(file, search)) found.get(name)?.add(file);
  }
  return [...found].map(([name, files]): Check => {
    const where = files.size === 0 ? "no file" : shown([...files].join(", "));
    const what = `files that hold ${name}`;
    return { step: "disk", state: null, what, expected: "no file", found: where, holds: files.size === 0 };
  });
}

function filesIn(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return filesIn(path);
    return entry.isFile() ? [path] : [];
  });
}

/** Standard output and error of the server, if they are files, and what a debugger left where the server was started. */
function filesOfProcess(pid: number | null): string[] {
  if (pid === null) return [];
  const logs = [1, 2].map((descriptor) => linkAt(`/proc/${pid}/fd/${descriptor}`));
  const directory = linkAt(`/proc/${pid}/cwd`);
  const dumps = namesOf(directory).filter((name) => /\.heapsnapshot$|^core(?:\.|$)/.test(name));
  const files = [...logs, ...dumps.map((name) => join(directory, name))];
  return [...new Set(files)].filter(isFile);
}

function linkAt(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return "";
  }
}

function namesOf(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function isFile(path: string): boolean {
  try {
    return lstatSync(path).isFile();
  } catch {
    return false;
  }
}

const chunk = Buffer.allocUnsafeSlow(chunkBytes);

/** Returns the names of the secrets that a file holds. */
function namesIn(file: string, search: SecretSearch): string[] {
  try {
    const descriptor = openSync(file, "r");
    try {
      for (let at = 0; ; at += chunkBytes - overlapBytes) {
        const length = readSync(descriptor, chunk, 0, chunkBytes, at);
        search.search(chunk.subarray(0, length), at);
        if (length < chunkBytes) break;
      }
    } finally {
      closeSync(descriptor);
    }
  } catch {
    // replaced or removed since it was listed
  }
  return search.take().flatMap(([{ name }, { copies }]) => (copies.length > 0 ? [name] : []));
}
