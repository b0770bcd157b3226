/**
 * Parser of Bitwarden's unencrypted JSON. Each item becomes a folder inside its folder (or collection), with a secret for
 * each field that is not empty: `username`, `password`, `totp`, `url` (one per line), `notes`, a card's `number`, `code`,
 * `exp-month`, …, and custom fields under `fields/`. Passkeys and password history are not imported.
 */
import { CommandFailure } from "../kit/errors.js";
import { isObject, objectsIn, textIn, type UnknownObject } from "../kit/prompts/input.js";
import {
  addAll,
  type ImportEntry,
  type Item,
  isOneTimeUrl,
  type Mark,
  oneTimeMark,
  type ParsedSource,
  pathOfNames,
  type Refused,
} from "./entry.js";
import { parseJson } from "./json.js";

/** Members that hold an item's own fields, one for each kind of item. */
const kinds = ["login", "card", "identity", "sshKey"] as const;

/** Members of a login that are not secrets of their own. */
const ignored = ["uris", "fido2Credentials", "passwordRevisionDate"];

type Field = { readonly name: string; readonly value: string };

/** @throws CommandFailure usage */
export function readBitwarden(text: string, file: string): ParsedSource {
  const json = parseJson(text, file);
  if (json["encrypted"] === true) {
    throw new CommandFailure("usage", `${file} is encrypted: choose the unencrypted JSON export in Bitwarden`);
  }
  if (!Array.isArray(json["items"]))
    throw new CommandFailure("usage", `${file} has no items: it is not a Bitwarden export`);
  const folders = namesById(json["folders"], json["collections"]);
  const found: ImportEntry[] = [];
  const refused: Refused[] = [];
  const leftOut: string[] = [];
  for (const [i, item] of json["items"].entries()) {
    const name = isObject(item) ? textIn(item["name"]) : null;
    const origin = `item ${i + 1}${name === null ? "" : ` (${name})`}`;
    if (!isObject(item) || name === null) {
      refused.push({ origin, problem: "it has no name" });
      continue;
    }
    const fields = [...ownFields(item), ...customFields(item)];
    const parent = parentOf(item, name, folders);
    addAll(
      found,
      fields.map((field) => secretOf(field, parent, origin)),
    );
    leftOut.push(...notImported(item, fields.length).map((what) => `${origin}: ${what}`));
  }
  return { found, refused, leftOut };
}

function namesById(...lists: readonly unknown[]): ReadonlyMap<unknown, string> {
  const named = lists.flatMap(objectsIn).map(({ id, name }) => [id, textIn(name) ?? ""] as const);
  return new Map(named);
}

function folderOf({ folderId, collectionIds }: UnknownObject, folders: ReadonlyMap<unknown, string>): string | null {
  const ids = [folderId, ...(Array.isArray(collectionIds) ? collectionIds : [])];
  return ids.map((id) => folders.get(id)).find((name) => name !== undefined) ?? null;
}

function parentOf(item: UnknownObject, name: string, folders: ReadonlyMap<unknown, string>): Item {
  const folder = folderOf(item, folders);
  const path = folder === null ? pathOfNames(name) : pathOfNames(folder, name);
  return { path, created: textIn(item["creationDate"]) ?? "", id: textIn(item["id"]) ?? "" };
}

function ownFields(item: UnknownObject): Field[] {
  const members = kinds.flatMap((kind) => Object.entries(isObject(item[kind]) ? item[kind] : {}));
  const fields = members
    .filter(([name]) => !ignored.includes(name))
    .map(([name, value]) => ({ name: withDashes(name), value: textIn(value) ?? "" }));
  const login = isObject(item["login"]) ? item["login"] : {};
  const urls = objectsIn(login["uris"]).flatMap(({ uri }) => textIn(uri) ?? []);
  const all = [
    ...fields,
    { name: "url", value: urls.join("\n") },
    { name: "notes", value: textIn(item["notes"]) ?? "" },
  ];
  return all.filter(({ value }) => value !== "");
}

function customFields(item: UnknownObject): Field[] {
  return objectsIn(item["fields"]).flatMap(({ name, value }) => {
    const text = typeof value === "boolean" ? String(value) : textIn(value);
    return text === null ? [] : [{ name: `fields/${textIn(name) ?? ""}`, value: text }];
  });
}

/** Spells expMonth as exp-month. */
function withDashes(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function secretOf({ name, value }: Field, item: Item, origin: string): ImportEntry {
  const path = `${item.path}/${pathOfNames(name)}`;
  return { path, value, ...markOf(name, value), origin: `${origin}, ${name}`, item };
}

function markOf(name: string, value: string): Mark {
  if (name === "totp" || isOneTimeUrl(value)) return oneTimeMark;
  return name === "password" ? { type: "password" } : {};
}

function notImported(item: UnknownObject, fields: number): string[] {
  const login = isObject(item["login"]) ? item["login"] : {};
  const passkeys = objectsIn(login["fido2Credentials"]).length > 0;
  const history = objectsIn(item["passwordHistory"]).length > 0;
  return [
    ...(passkeys ? ["its passkeys"] : []),
    ...(history ? ["its password history"] : []),
    ...(fields === 0 ? ["it has only a name"] : []),
  ];
}
