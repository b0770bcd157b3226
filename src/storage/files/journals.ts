/** Journals of a vault's batches: a file each, numbered in the order of the batches. */
import { join } from "node:path";
import { StartError } from "../../errors.js";
import type { FileOperations } from "../../files/durable.js";
import { readFileBytes } from "../../files/read-file.js";
import { type BatchChanges, decodeJournal } from "./journal-format.js";

/** One without a number is older than all others. */
const journalName = /^journal(?:-([1-9][0-9]{0,14}))?$/;

export function isJournal(name: string): boolean {
  return journalName.test(name);
}

/** Larger than any batch with its paths. */
export const maxJournalBytes = 2 ** 30;

export function journalFile(directory: string, number: number): string {
  return join(directory, `journal-${number}`);
}

function numberOf(journal: string): number {
  return Number(journalName.exec(journal)?.[1] ?? 0);
}

type Journal = { readonly journal: string; readonly number: number; readonly changes: BatchChanges };

/** Oldest first. @throws StartError for a damaged one */
export async function readJournals(files: FileOperations, directory: string): Promise<Journal[]> {
  const names = (await files.readdir(directory)).filter(isJournal).sort((a, b) => numberOf(a) - numberOf(b));
  const found: Journal[] = [];
  for (const name of names) {
    const journal = join(directory, name);
    const bytes = await readFileBytes(files, journal, maxJournalBytes);
    if (bytes === null) continue; // removed meanwhile, by the server whose vault a backup reads
    const changes = decodeJournal(bytes);
    if (changes === null) throw damagedJournal(journal);
    found.push({ journal, number: numberOf(name), changes });
  }
  return found;
}

/** Returns the changes in a vault's journals. @throws StartError for a damaged one */
export async function pendingChanges(files: FileOperations, directory: string): Promise<BatchChanges> {
  const journals = await readJournals(files, directory);
  return new Map(journals.flatMap(({ changes }) => [...changes]));
}

function damagedJournal(path: string): StartError {
  return new StartError(
    `${path}, which completes a batch of changes, is damaged: restore the vault from a backup, or move it away ` +
      "(the batch may then be incomplete), then start again",
  );
}
