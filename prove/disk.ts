/** Search for secrets in the files of a home, in the rows of a database, and in the server's log where that is a file. */
import { closeSync, lstatSync, openSync, readdirSync, readlinkSync, readSync } from "node:fs";
import { join } from "node:path";
import type { Check } from "./report.js";
import { type Secret, SecretSearch } from "./search.js";
import type { Source } from "./source.js";
import { shown } from "./surroundings.js";

const chunkBytes = 4 * 2 ** 20;
/** A secret in its longest form may lie across two chunks. */
const overlapBytes = 4096;

/**
 * Searches the home's files, the rows of its database, the server's log, and heap snapshots and core dumps in its directory.
 * @param secrets - values, passphrase and keys; those of one name are reported together
 */
export async function checkDisk(
  home: string,
  pid: number | null,
  secrets: readonly Secret[],
  source: Source,
): Promise<Check[]> {
  const search = new SecretSearch(secrets.map((secret) => ({ ...secret, pieceBytes: 0 })));
  const found = new Map(secrets.map(({ name }) => [name, new Set<string>()]));
  for (const file of [...filesIn(home), ...filesOfProcess(pid)]) {
    for (const name of namesIn(file, search)) found.get(name)?.add(file);
  }
  const checks = [...found].map(([name, files]) => checkOf(`files that hold ${name}`, "no file", files));
  if (source.rows === null) return checks;
  const rows = new Map(secrets.map(({ name }) => [name, new Set<string>()]));
  for await (const { name: row, bytes } of source.rows()) {
    search.search(Buffer.concat([Buffer.from(`${row}\n`), bytes]), 0);
    for (const name of foundBy(search)) rows.get(name)?.add(row);
  }
  return [
    ...checks,
    ...[...rows].map(([name, found]) => checkOf(`rows of the database that hold ${name}`, "no row", found)),
  ];
}

function checkOf(what: string, expected: string, places: ReadonlySet<string>): Check {
  const found = places.size === 0 ? expected : shown([...places].join(", "));
  return { step: "disk", state: null, what, expected, found, holds: places.size === 0 };
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
  return foundBy(search);
}

function foundBy(search: SecretSearch): string[] {
  return search.take().flatMap(([{ name }, { copies }]) => (copies.length > 0 ? [name] : []));
}
