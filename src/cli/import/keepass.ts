/**
 * Parser of the XML that KeePass and KeePassXC export (KDBX 2 to 4). Each entry becomes a folder in its group, with a secret
 * for each of `username`, `password`, `url`, `notes`, `totp`, and custom fields under `fields/`. The root group is no folder.
 * The recycle bin, earlier versions and attachments are not imported.
 */
import { CommandFailure } from "../kit/errors.js";
import {
  addAll,
  type ImportEntry,
  isOneTimeUrl,
  type Mark,
  oneTimeMark,
  type ParsedSource,
  pathOfNames,
  type Refused,
} from "./entry.js";
import { type Element, parseXml } from "./xml.js";

const names: Readonly<Record<string, string>> = {
  UserName: "username",
  Password: "password",
  URL: "url",
  Notes: "notes",
  otp: "totp",
  "TimeOtp-Secret-Base32": "totp",
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
  const root = childOf(childOf(document, "Root"), "Group");
  if (document.name !== "KeePassFile" || root === undefined) {
    throw new CommandFailure("usage", `${file} has no groups: it is not an XML export of KeePass`);
  }
  const meta = childOf(document, "Meta");
  const hasBin = textOf(childOf(meta, "RecycleBinEnabled")) !== "False";
  const bin = hasBin ? textOf(childOf(meta, "RecycleBinUUID")) : "";
  const read: Read = { bin: /^A*=*$/.test(bin) ? null : bin, found: [], refused: [], leftOut: [] };
  readGroup(root, [], read);
  return read;
}

type Read = {
  /** The identifier of the recycle bin; null without one. */
  readonly bin: string | null;
  readonly found: ImportEntry[];
  readonly refused: Refused[];
  readonly leftOut: string[];
};

function readGroup(group: Element, folders: readonly string[], read: Read): void {
  for (const child of group.children) {
    if (child.name === "Entry") readEntry(child, folders, read);
    else if (child.name === "Group") readChildGroup(child, folders, read);
  }
}

function readChildGroup(group: Element, folders: readonly string[], read: Read): void {
  const isBin = read.bin !== null && textOf(childOf(group, "UUID")) === read.bin;
  const count = isBin ? entriesIn(group) : 0;
  if (count > 0) read.leftOut.push(`the recycle bin (${count} ${count === 1 ? "entry" : "entries"})`);
  if (!isBin) readGroup(group, [...folders, flat(textOf(childOf(group, "Name")))], read);
}

function entriesIn({ children }: Element): number {
  return children.reduce(
    (sum, child) => sum + (child.name === "Entry" ? 1 : child.name === "Group" ? entriesIn(child) : 0),
    0,
  );
}

function readEntry(entry: Element, folders: readonly string[], { found, refused, leftOut }: Read): void {
  const fields = stringsOf(entry);
  const title = flat(fields.get("Title") ?? "");
  const origin = `entry ${[...folders, title].filter(Boolean).join("/") || found.length + 1}`;
  if (title === "") {
    refused.push({ origin, problem: "it has no title" });
    return;
  }
  const created = textOf(childOf(childOf(entry, "Times"), "CreationTime"));
  const item = { path: pathOfNames(...folders, title), created, id: textOf(childOf(entry, "UUID")) };
  const secrets = [...fields].flatMap(([key, value]): ImportEntry[] => {
    if (key === "Title" || value === "") return [];
    const name = names[key] ?? `fields/${flat(key)}`;
    return [{ path: `${item.path}/${name}`, value, ...markOf(name, value), origin: `${origin}, ${name}`, item }];
  });
  addAll(found, secrets);
  if (childOf(entry, "Binary") !== undefined) leftOut.push(`${origin}: its attachments`);
  if (secrets.length === 0) leftOut.push(`${origin}: it has only a title`);
}

function stringsOf(entry: Element): Map<string, string> {
  const strings = entry.children.filter(({ name }) => name === "String");
  return new Map(strings.map((each) => [textOf(childOf(each, "Key")), childOf(each, "Value")?.text ?? ""]));
}

function markOf(name: string, value: string): Mark {
  if (name === "totp" || isOneTimeUrl(value)) return oneTimeMark;
  return name === "password" ? { type: "password" } : {};
}

/** Slashes in a name make no folders. */
function flat(name: string): string {
  return name.trim().replace(/\s*\/\s*/g, "-");
}

/** Inside a KDBX file, protected values are encrypted; an export has them in clear. */
function hasEncryptedValue({ attributes, children }: Element): boolean {
  return attributes.includes('Protected="True"') || children.some(hasEncryptedValue);
}

function childOf(node: Element | undefined, name: string): Element | undefined {
  return node?.children.find((child) => child.name === name);
}

function textOf(node: Element | undefined): string {
  return node?.text.trim() ?? "";
}
