/** Lists of secrets as paths, a table or JSON; printed page by page, so that a long list starts at once. */
import type { Command } from "commander";
import type { SecretEntry, SecretList } from "../../client/client.js";
import { CommandFailure } from "./exit-codes.js";
import { type OutputFlags, painter, printable, printJson, printLine, withResult } from "./output.js";

export type ListingFlags = OutputFlags & { readonly long?: true };

export function withListing(command: Command): Command {
  return withResult(command.option("-l, --long", "show type, last change and description too"));
}

/** Prints the entries that `keeps` selects; returns how many. @throws CommandFailure findings, when some cannot be read */
export async function printList(
  pages: AsyncIterable<SecretList>,
  keeps: (entry: SecretEntry) => boolean,
  flags: ListingFlags,
): Promise<number> {
  const kept: SecretEntry[] = [];
  const damaged: string[] = [];
  let count = 0;
  for await (const page of pages) {
    const entries = page.entries.filter(keeps);
    count += entries.length;
    damaged.push(...(page.damaged ?? []));
    if (flags.json) kept.push(...entries);
    else printPage(entries, flags);
  }
  if (flags.json) printJson({ entries: kept, damaged });
  if (damaged.length === 0) return count;
  const names = damaged.map(printable).join(", ");
  throw new CommandFailure("findings", `not shown, since damaged: ${names}; see  strongroom doctor`);
}

function printPage(entries: readonly SecretEntry[], { long }: ListingFlags): void {
  if (!long) {
    for (const { path } of entries) printLine(path);
    return;
  }
  const paint = painter(process.stdout);
  const width = Math.max(0, ...entries.map(({ path }) => printable(path).length));
  for (const { path, metadata, updatedAt } of entries) {
    const type = (metadata.type ?? "-").padEnd("oauth-token".length);
    const row = `${printable(path).padEnd(width)}  ${type}  ${updatedAt.slice(0, 16).replace("T", " ")}Z`;
    const description = metadata.description === undefined ? "" : `  ${paint("dim", printable(metadata.description))}`;
    process.stdout.write(`${row}${description}\n`);
  }
}
