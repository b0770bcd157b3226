/**
 * Lists of secrets as paths, a table, a tree or JSON. Outside of a terminal they are printed page by page, so that a long
 * list starts at once.
 */
import type { Command } from "commander";
import type { SecretEntry, SecretList } from "../../../client/client.js";
import { CommandFailure } from "../errors.js";
import type { Io } from "../io.js";
import {
  displayWidth,
  fitted,
  localDate,
  localMinute,
  type OutputFlags,
  padded,
  painter,
  printable,
  printJson,
  shortened,
  withResult,
} from "../output.js";

export type ListingFlags = OutputFlags & { readonly long?: true };

export function withListing(command: Command): Command {
  return withResult(command.option("-l, --long", "also show type, last change, expiry and description"));
}

/** Turns the entries into lines for a terminal. */
type Arrange = (entries: readonly SecretEntry[]) => TreeRow<SecretEntry>[];

export const asTree: Arrange = (entries) => pathTree(entries);
export const asPaths: Arrange = (entries) => entries.map((item) => ({ branch: "", name: item.path, item }));

/** Prints the entries that `keeps` selects; returns how many. @throws CommandFailure findings, when some cannot be read */
export async function printList(
  io: Io,
  pages: AsyncIterable<SecretList>,
  keeps: (entry: SecretEntry) => boolean,
  arrange: Arrange,
  flags: ListingFlags,
): Promise<number> {
  const kept: SecretEntry[] = [];
  const damaged: string[] = [];
  const waits = flags.json === true || io.stdout.isTTY;
  let count = 0;
  for await (const page of pages) {
    const entries = page.entries.filter(keeps);
    count += entries.length;
    damaged.push(...(page.damaged ?? []));
    if (waits) kept.push(...entries);
    else
      io.stdout.write(flags.long ? listTable(io, asPaths(entries)) : entries.map(({ path }) => `${path}\n`).join(""));
  }
  if (flags.json) printJson(io, { entries: kept, damaged });
  else if (waits) io.stdout.write(shownOnTerminal(io, arrange(kept), flags));
  if (damaged.length === 0) return count;
  const names = damaged.map(printable).join(", ");
  throw new CommandFailure("findings", `damaged, not shown: ${names}; see  strongroom doctor`);
}

function shownOnTerminal(io: Io, rows: readonly TreeRow<SecretEntry>[], { long }: ListingFlags): string {
  if (long) return fitted(listTable(io, rows, io.stdout.columns || undefined), io.stdout);
  const paint = painter(io);
  return rows.map(({ branch, name }) => `${branch && paint("dim", branch)}${printable(name)}\n`).join("");
}

const gap = "  ";
const typeWidth = "oauth-token".length;

/** Descriptions are cut to what fits into `columns`; paths never are, since they are there to be copied. */
export function listTable(io: Io, rows: readonly TreeRow<SecretEntry>[], columns = Number.POSITIVE_INFINITY): string {
  const paint = painter(io);
  const labels = rows.map(({ branch, name }) => `${branch}${printable(name)}`);
  const width = labels.reduce((most, label) => Math.max(most, displayWidth(label)), 0); // too many to be arguments
  const lines = rows.map(({ item }, i) => {
    const label = labels[i] ?? "";
    if (item === undefined) return label;
    const { metadata, updatedAt } = item;
    const row = [padded(label, width), padded(metadata.type ?? "-", typeWidth), localMinute(new Date(updatedAt))].join(
      gap,
    );
    const room = columns - displayWidth(row) - gap.length;
    const expiry = metadata.expiresAt === undefined ? "" : `expires ${localDate(new Date(metadata.expiresAt))}`;
    const about = [expiry, printable(metadata.description ?? "")].filter((text) => text !== "").join(gap);
    const description = shortened(about, room);
    return description === "" ? row : `${row}${gap}${paint("dim", description)}`;
  });
  return lines.map((line) => `${line}\n`).join("");
}

/** A line of the tree; without an item for a folder. */
type TreeRow<T> = { readonly branch: string; readonly name: string; readonly item?: T | undefined };

type Node<T> = { item?: T; readonly children: Map<string, Node<T>> };

/** Returns the lines from top to bottom; entries keep their order in each folder. */
export function pathTree<T extends { readonly path: string }>(items: readonly T[]): TreeRow<T>[] {
  const root: Node<T> = { children: new Map() };
  for (const item of items) {
    let node = root;
    for (const name of item.path.split(/(?<=\/)/)) node = childNode(node, name);
    node.item = item;
  }
  return [...root.children].flatMap(([name, node]) => {
    const top = joined(name, node);
    return [{ branch: "", name: top.name, item: top.node.item }, ...rowsUnder(top.node, "")];
  });
}

function childNode<T>({ children }: Node<T>, name: string): Node<T> {
  const known = children.get(name);
  if (known !== undefined) return known;
  const made: Node<T> = { children: new Map() };
  children.set(name, made);
  return made;
}

function rowsUnder<T>({ children }: Node<T>, indent: string): TreeRow<T>[] {
  const last = [...children.keys()].at(-1);
  return [...children].flatMap(([key, child]) => {
    const [corner, bar] = key === last ? ["└── ", "    "] : ["├── ", "│   "];
    const { name, node } = joined(key, child);
    return [{ branch: `${indent}${corner}`, name, item: node.item }, ...rowsUnder(node, `${indent}${bar}`)];
  });
}

function joined<T>(name: string, node: Node<T>): { readonly name: string; readonly node: Node<T> } {
  const [only, ...others] = node.children;
  return only === undefined || others.length > 0 ? { name, node } : joined(`${name}${only[0]}`, only[1]);
}
