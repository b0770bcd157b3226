/** Search for secrets in the files of a home, in the rows of a database, and in the server's log where that is a file. */
import { closeSync, constants, readdirSync, readlinkSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Home, missingAsNull, openPlain } from "./home.js";
import type { Check } from "./report.js";
import { type Secret, SecretSearch } from "./search.js";
import type { Source } from "./source.js";
import { shown } from "./surroundings.js";

const chunkBytes = 4 * 2 ** 20;
/** A secret in its longest form may lie across two chunks. */
const overlapBytes = 4096;

/** `unsearched`: files outside the home that cannot be read. */
export type DiskSearch = { readonly checks: Check[]; readonly unsearched: readonly string[] };

/**
 * Searches the home's files, the rows of its database, the server's log, and heap snapshots and core dumps in its directory.
 * @param secrets - values, passphrase and keys; those of one name are reported together
 * @throws an error of the system when a file of the home cannot be read
 */
export async function checkDisk(
  home: Home | null,
  pid: number | null,
  secrets: readonly Secret[],
  source: Source,
): Promise<DiskSearch> {
  const search = new SecretSearch(secrets.map((secret) => ({ ...secret, pieceBytes: 0 })));
  const found = new Map(secrets.map(({ name }) => [name, new Set<string>()]));
  const unsearched: string[] = [];
  const searchFile = (shown: string, file: number | null) => {
    if (file === null) return; // removed since it was listed
    for (const name of namesIn(file, search)) found.get(name)?.add(shown);
  };
  if (home !== null)
    for (const file of filesIn(home, "")) searchFile(join(home.path, file), home.openFile(join(home.path, file)));
  for (const { name, open } of filesOfProcess(pid)) {
    try {
      searchFile(name, open());
    } catch {
      unsearched.push(shown(name));
    }
  }
  const checks = [...found].map(([name, files]) => placesCheck(`files that hold ${name}`, "no file", files));
  return { checks: [...checks, ...(await checkRows(source, search, secrets))], unsearched };
}

async function checkRows(source: Source, search: SecretSearch, secrets: readonly Secret[]): Promise<Check[]> {
  if (source.rows === null) return [];
  const rows = new Map(secrets.map(({ name }) => [name, new Set<string>()]));
  for await (const { name: row, bytes } of source.rows()) {
    search.search(Buffer.concat([Buffer.from(`${row}\n`), bytes]), 0);
    for (const name of foundBy(search)) rows.get(name)?.add(row);
  }
  return [...rows].map(([name, found]) => placesCheck(`rows of the database that hold ${name}`, "no row", found));
}

function placesCheck(what: string, expected: string, places: ReadonlySet<string>): Check {
  const found = places.size === 0 ? expected : shown([...places].join(", "));
  return { step: "disk", state: null, what, expected, found, holds: places.size === 0 };
}

/** Names of the plain files below a directory of the home. */
function filesIn(home: Home, directory: string): string[] {
  return home.entries(directory).flatMap((entry) => {
    const name = join(directory, entry.name);
    if (entry.isDirectory()) return filesIn(home, name);
    return entry.isFile() ? [name] : [];
  });
}

type OpenedFile = { readonly name: string; readonly open: () => number | null };

/** Standard output and error of the server, if they are files, and what a debugger left where the server was started. */
function filesOfProcess(pid: number | null): OpenedFile[] {
  if (pid === null) return [];
  const logs = ["1", "2"].map((descriptor) => `/proc/${pid}/fd/${descriptor}`).filter(isFile);
  const directory = `/proc/${pid}/cwd`;
  const dumps = directoryNames(directory).filter((name) => /\.heapsnapshot$|^core(?:\.|$)/.test(name));
  const byName = new Map(logs.map((file) => [linkAt(file), { name: linkAt(file), open: () => openPlain(file) }]));
  const left = dumps.map((name) => {
    const open = () => missingAsNull(() => openPlain(join(directory, name), constants.O_NOFOLLOW));
    return { name: join(linkAt(directory), name), open };
  });
  return [...byName.values(), ...left];
}

function linkAt(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return "";
  }
}

function directoryNames(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

const chunk = Buffer.allocUnsafeSlow(chunkBytes);

/** Returns the names of the secrets that an open file holds, and closes it. */
function namesIn(file: number, search: SecretSearch): string[] {
  try {
    for (let at = 0; ; at += chunkBytes - overlapBytes) {
      const length = readSync(file, chunk, 0, chunkBytes, at);
      search.search(chunk.subarray(0, length), at);
      if (length < chunkBytes) return foundBy(search);
    }
  } finally {
    closeSync(file);
  }
}

function foundBy(search: SecretSearch): string[] {
  return search.take().flatMap(([{ name }, { copies }]) => (copies.length > 0 ? [name] : []));
}
