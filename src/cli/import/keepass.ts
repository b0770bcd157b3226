/**
 * Parser of the XML that KeePass and KeePassXC export (KDBX 2 to 4). Each entry becomes a folder in its group, with a secret
 * for each of `username`, `password`, `url`, `notes`, `totp`, `tags`, and custom fields under `fields/`. The root group is no
 * folder. The recycle bin, earlier versions, attachments and the notes of groups are not imported.
 */
import { CommandFailure } from "../kit/errors.js";
import { joinSources, type ParsedSource, type Refused } from "./entry.js";
import { type Field, readSecrets, type SourceItem, standardField } from "./items.js";
import { type Referable, resolvedField } from "./keepass-references.js";
import { seedsIn } from "./keepass-seeds.js";
import { type Element, parseXml } from "./xml.js";

const names: Readonly<Record<string, string>> = {
  ...{ UserName: "username", Password: "password", URL: "url", Notes: "notes", otp: "totp" },
};

export function isKeePass(text: string): boolean {
  return /^\uFEFF?\s*(?:<\?xml[^>]*>\s*)?(?:<!--[^>]*-->\s*)?<KeePassFile\b/.test(text);
}

/** @throws CommandFailure usage */
export function readKeePass(text: string, file: string): ParsedSource {
  const document = parseXml(text, file);
  if (hasEncryptedValue(document)) {
    throw new CommandFailure(
      "usage",
      `${file} has encrypted values, as inside a KDBX file: use the program's XML export`,
    );
  }
  const roots = document.children.filter(({ name }) => name === "Root").flatMap(({ children }) => children);
  const [root, second] = roots.filter(({ name }) => name === "Group");
  if (document.name !== "KeePassFile" || root === undefined) {
    throw new CommandFailure("usage", `${file} has no groups: it is not an XML export of KeePass`);
  }
  if (second !== undefined) throw new CommandFailure("usage", `${file} has several root groups: export it again`);
  const meta = findChild(document, "Meta");
  const hasBin = elementText(findChild(meta, "RecycleBinEnabled")) !== "False";
  const bin = hasBin ? elementText(findChild(meta, "RecycleBinUUID")) : "";
  const read: Read = { bin: /^A*=*$/.test(bin) ? null : bin, entries: [], leftOut: [] };
  readGroup(root, [], read);
  const kept = read.entries.filter(({ isDeleted }) => !isDeleted);
  const items = kept.map((entry, i) => makeItem(entry, i + 1, read.entries));
  const remarks = items.flatMap(({ remarks }) => remarks);
  return joinSources([{ leftOut: read.leftOut, remarks }, readSecrets(items)]);
}

type Entry = Referable & {
  readonly element: Element;
  readonly folders: readonly string[];
  /** Strings in their order; names may be there twice. */
  readonly all: readonly (readonly [key: string, value: string])[];
  /** It is in the recycle bin, where references still find it. */
  readonly isDeleted: boolean;
};

type Read = {
  /** The identifier of the recycle bin; null without one. */
  readonly bin: string | null;
  readonly entries: Entry[];
  readonly leftOut: string[];
};

function readGroup(group: Element, folders: readonly string[], read: Read, isDeleted = false): void {
  const notes = elementText(findChild(group, "Notes"));
  if (notes !== "" && !isDeleted)
    read.leftOut.push(`group ${folders.join("/") || elementText(findChild(group, "Name"))}: its notes`);
  for (const child of group.children) {
    if (child.name === "Entry") read.entries.push(makeEntry(child, folders, isDeleted));
    else if (child.name === "Group") readChildGroup(child, folders, read, isDeleted);
  }
}

function readChildGroup(group: Element, folders: readonly string[], read: Read, isDeleted: boolean): void {
  const isBin = read.bin !== null && elementText(findChild(group, "UUID")) === read.bin;
  const count = isBin ? entriesIn(group) : 0;
  if (count > 0) read.leftOut.push(`the recycle bin (${count} ${count === 1 ? "entry" : "entries"})`);
  readGroup(group, [...folders, elementText(findChild(group, "Name"))], read, isDeleted || isBin);
}

function entriesIn({ children }: Element): number {
  return children.reduce(
    (sum, child) => sum + (child.name === "Entry" ? 1 : child.name === "Group" ? entriesIn(child) : 0),
    0,
  );
}

function makeEntry(element: Element, folders: readonly string[], isDeleted: boolean): Entry {
  const strings = element.children.filter(({ name }) => name === "String");
  const all = strings.map(
    (each) => [elementText(findChild(each, "Key")), findChild(each, "Value")?.text ?? ""] as const,
  );
  const id = Buffer.from(elementText(findChild(element, "UUID")), "base64")
    .toString("hex")
    .toUpperCase();
  return { element, folders, all, id, isDeleted, strings: firstOfEachKey(all) };
}

function firstOfEachKey(all: Entry["all"]): ReadonlyMap<string, string> {
  const strings = new Map<string, string>();
  for (const [key, value] of all) if (!strings.has(key)) strings.set(key, value);
  return strings;
}

function makeItem(
  entry: Entry,
  number: number,
  entries: readonly Referable[],
): SourceItem & { readonly remarks: string[] } {
  const { element, folders, all } = entry;
  const { strings, refused, remarks } = resolved(entry, entries);
  const title = strings.get("Title")?.trim() ?? "";
  const origin = `entry ${[...folders, title].filter(Boolean).join("/") || number}`;
  const seeds = seedsIn(strings, origin);
  const others = all.flatMap(([key, raw], i): Field[] => {
    if (key === "Title" || seeds.used.has(key)) return [];
    const isFirst = all.findIndex(([other]) => other === key) === i;
    return [makeField(key, isFirst ? (strings.get(key) ?? "") : raw)];
  });
  const created = elementText(findChild(findChild(element, "Times"), "CreationTime"));
  const tags = standardField("tags", elementText(findChild(element, "Tags")));
  const override = standardField("override-url", elementText(findChild(element, "OverrideURL")));
  const inEntry = (list: readonly Refused[]) => list.map((one) => ({ ...one, origin: `${origin}, ${one.origin}` }));
  return {
    ...{ origin, folders, title, created, id: entry.id },
    fields: [...others, ...seeds.seeds, tags, override],
    refused: [...inEntry(refused), ...seeds.refused],
    leftOut: notImported(element),
    remarks: remarks.map((name) => `${origin}, ${name}: its references are filled in`),
  };
}

/** Returns the strings with their references filled in; those where that is not certain are refused, and empty. */
function resolved(entry: Entry, entries: readonly Referable[]) {
  const [strings, refused, remarks]: [Map<string, string>, Refused[], string[]] = [new Map(), [], []];
  for (const [key, raw] of entry.strings) {
    const value = resolvedField(key, entry, entries);
    strings.set(key, typeof value === "string" ? value : "");
    const name = names[key] ?? key;
    if (typeof value !== "string") refused.push({ origin: name, ...value });
    else if (value !== raw) remarks.push(name);
  }
  return { strings, refused, remarks };
}

function makeField(key: string, value: string): Field {
  const name = names[key];
  return name === undefined ? { name: ["fields", key], value, label: key } : standardField(name, value, key);
}

function notImported(entry: Element): string[] {
  const has = (name: string, inside: string) =>
    (findChild(entry, name)?.children ?? []).some((each) => each.name === inside);
  const expires = elementText(findChild(findChild(entry, "Times"), "Expires")) === "True";
  return [
    ...(findChild(entry, "Binary") !== undefined ? ["its attachments"] : []),
    ...(has("History", "Entry") ? ["its earlier versions"] : []),
    ...(has("AutoType", "Association") ? ["its auto-type settings"] : []),
    ...(has("CustomData", "Item") ? ["its plugin data"] : []),
    ...(expires ? [`its date of expiry, ${elementText(findChild(findChild(entry, "Times"), "ExpiryTime"))}`] : []),
  ];
}

/** Inside a KDBX file, protected values are encrypted; an export has them in clear. */
function hasEncryptedValue({ attributes, children }: Element): boolean {
  return attributes.includes('Protected="True"') || children.some(hasEncryptedValue);
}

function findChild(node: Element | undefined, name: string): Element | undefined {
  return node?.children.find((child) => child.name === name);
}

function elementText(node: Element | undefined): string {
  return node?.text.trim() ?? "";
}
