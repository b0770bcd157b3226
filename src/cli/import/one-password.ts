/**
 * Parser of 1Password's export (.1pux). Each item becomes a folder inside its vault, with a secret for each field that is not
 * empty: `username`, `password`, `url` (one per line), `notes`, `totp`, and the fields of its sections under their titles.
 * Archived items are imported under `archive/`. Documents, passkeys and password history are not imported.
 */
import { CommandFailure } from "../kit/errors.js";
import { isObject, objectsIn, textIn, textOfInput, type UnknownObject } from "../kit/prompts/input.js";
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
import { readMember } from "./zip.js";

/** Far above any export without its documents. */
const maxJsonBytes = 128 * 2 ** 20;

type Field = { readonly name: string; readonly value: string; readonly isOneTime?: boolean };

/** @throws CommandFailure usage */
export function readOnePassword(archive: Buffer, file: string): ParsedSource {
  const data = readMember(archive, "export.data", maxJsonBytes, file);
  if (data === null) throw new CommandFailure("usage", `${file} has no export.data: it is not a 1Password export`);
  const json = parseJson(textOfInput(data, file), file);
  if (!Array.isArray(json["accounts"])) {
    throw new CommandFailure("usage", `${file} has no accounts: it is not a 1Password export`);
  }
  const found: ImportEntry[] = [];
  const refused: Refused[] = [];
  const leftOut: string[] = [];
  const vaults = objectsIn(json["accounts"]).flatMap(({ vaults }) => objectsIn(vaults));
  for (const [vault, item, number] of vaults.flatMap(itemsOf)) {
    const title = textIn(memberOf(item, "overview")["title"]);
    const origin = `${vault}, item ${number}${title === null ? "" : ` (${title})`}`;
    if (title === null) {
      refused.push({ origin, problem: "it has no title" });
      continue;
    }
    const fields = fieldsOf(item);
    const parent = placeOf(item, vault, title, vaults.length > 1);
    addAll(
      found,
      fields.map((field) => secretOf(field, parent, origin)),
    );
    leftOut.push(...notImported(item, fields.length).map((what) => `${origin}: ${what}`));
  }
  return { found, refused, leftOut };
}

function itemsOf(vault: UnknownObject): [string, UnknownObject, number][] {
  const name = textIn(memberOf(vault, "attrs")["name"]) ?? "Private";
  return objectsIn(vault["items"]).map((item, i) => [name, item, i + 1]);
}

/** A vault is a folder where there are several. */
function placeOf(item: UnknownObject, vault: string, title: string, hasSeveral: boolean): Item {
  const folders = [...(item["state"] === "archived" ? ["archive"] : []), ...(hasSeveral ? [flat(vault)] : [])];
  const created = typeof item["createdAt"] === "number" ? String(item["createdAt"]).padStart(12, "0") : "";
  return { path: pathOfNames(...folders, title), created, id: textIn(item["uuid"]) ?? "" };
}

function fieldsOf(item: UnknownObject): Field[] {
  const details = memberOf(item, "details");
  const overview = memberOf(item, "overview");
  const urls = objectsIn(overview["urls"]).flatMap(({ url }) => textIn(url) ?? []);
  const url = urls.length > 0 ? urls.join("\n") : (textIn(overview["url"]) ?? "");
  const all: Field[] = [
    ...objectsIn(details["loginFields"]).flatMap(loginField),
    { name: "password", value: textIn(details["password"]) ?? "" },
    ...objectsIn(details["sections"]).flatMap(sectionFields),
    { name: "url", value: url },
    { name: "notes", value: textIn(details["notesPlain"]) ?? "" },
  ];
  return all.filter(({ value }) => value !== "");
}

/** What a page's form had: only the user's name and the password are kept under names of their own. */
function loginField({ designation, name, value }: UnknownObject): Field[] {
  const label =
    designation === "username" || designation === "password" ? designation : `form/${flat(textIn(name) ?? "")}`;
  return [{ name: label, value: textIn(value) ?? "" }];
}

function sectionFields({ title, fields }: UnknownObject): Field[] {
  const section = flat(textIn(title) ?? "");
  return objectsIn(fields).flatMap((field) => {
    const label = flat(textIn(field["title"]) ?? textIn(field["id"]) ?? "");
    return valuesOf(label, memberOf(field, "value")).map((each) => {
      return { ...each, name: each.isOneTime ? "totp" : section === "" ? each.name : `${section}/${each.name}` };
    });
  });
}

/** A value is an object whose one member says what kind it is. */
function valuesOf(label: string, value: UnknownObject): Field[] {
  return Object.entries(value).flatMap(([kind, content]): Field[] => {
    if (kind === "file") return [];
    if (kind === "totp") return [{ name: label, value: textIn(content) ?? "", isOneTime: true }];
    if (kind === "sshKey") return [{ name: label, value: textIn(memberOf(value, kind)["privateKey"]) ?? "" }];
    if (isObject(content)) {
      return Object.entries(content).map(([name, text]) => ({
        name: `${label}/${flat(name)}`,
        value: textIn(text) ?? "",
      }));
    }
    return [{ name: label, value: kind === "date" ? dateOf(content) : plainText(content) }];
  });
}

/** 1Password keeps a date as seconds since 1970. */
function dateOf(content: unknown): string {
  const date = new Date(typeof content === "number" ? content * 1000 : Number.NaN);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 10);
}

function plainText(content: unknown): string {
  return typeof content === "number" ? String(content) : (textIn(content) ?? "");
}

/** Slashes in a label make no folders. */
function flat(label: string): string {
  return label.trim().replace(/\s*\/\s*/g, "-");
}

function secretOf({ name, value, isOneTime }: Field, item: Item, origin: string): ImportEntry {
  return {
    path: `${item.path}/${pathOfNames(name)}`,
    value,
    ...markOf(name, value, isOneTime),
    origin: `${origin}, ${name}`,
    item,
  };
}

function markOf(name: string, value: string, isOneTime = false): Mark {
  if (isOneTime || isOneTimeUrl(value)) return oneTimeMark;
  return name === "password" ? { type: "password" } : {};
}

function notImported(item: UnknownObject, fields: number): string[] {
  const details = memberOf(item, "details");
  const sections = objectsIn(details["sections"]).flatMap((section) => objectsIn(section["fields"]));
  const hasFile =
    isObject(details["documentAttributes"]) || sections.some((field) => isObject(memberOf(field, "value")["file"]));
  return [
    ...(hasFile ? ["its files"] : []),
    ...(isObject(details["passkey"]) ? ["its passkey"] : []),
    ...(objectsIn(details["passwordHistory"]).length > 0 ? ["its password history"] : []),
    ...(fields === 0 ? ["it has only a title"] : []),
  ];
}

function memberOf(object: UnknownObject, name: string): UnknownObject {
  const member = object[name];
  return isObject(member) ? member : {};
}
