/**
 * Parser of 1Password's export (.1pux). Each item becomes a folder inside its vault, with a secret for each field that is not
 * empty: `username`, `password`, `url` (one per line), `notes`, `totp`, `tags`, and the fields of its sections under their
 * titles. Archived items are imported under `archive/`. Documents, passkeys and password history are not imported.
 */
import { CommandFailure } from "../kit/errors.js";
import { isObject, objectsIn, textIn, textOfInput, type UnknownObject } from "../kit/prompts/input.js";
import type { ParsedSource } from "./entry.js";
import { type Field, readSecrets, type SourceItem, standardField } from "./items.js";
import { parseJson, plainText } from "./json.js";
import { readMember } from "./zip.js";

/** @throws CommandFailure usage */
export function readOnePassword(archive: Buffer, file: string): ParsedSource {
  const data = readMember(archive, "export.data", file);
  if (data === null) throw new CommandFailure("usage", `${file} has no export.data: it is not a 1Password export`);
  const json = parseJson(textOfInput(data, file), file);
  if (!Array.isArray(json["accounts"])) {
    throw new CommandFailure("usage", `${file} has no accounts: it is not a 1Password export`);
  }
  const vaults = objectsIn(json["accounts"]).flatMap(({ vaults }) => objectsIn(vaults));
  return readSecrets(vaults.flatMap((vault) => readItems(vault, vaults.length > 1)));
}

/** A vault is a folder where there are several. */
function readItems(vault: UnknownObject, isFolder: boolean): SourceItem[] {
  const name = textIn(objectMember(vault, "attrs")["name"]) ?? "Private";
  return objectsIn(vault["items"]).map((item, i) => {
    const title = textIn(objectMember(item, "overview")["title"]) ?? "";
    return {
      origin: `${name}, item ${i + 1}${title === "" ? "" : ` (${title})`}`,
      title,
      folders: [...(item["state"] === "archived" ? ["archive"] : []), ...(isFolder ? [name] : [])],
      fields: itemFields(item),
      leftOut: notImported(item),
      created: typeof item["createdAt"] === "number" ? String(item["createdAt"]).padStart(12, "0") : "",
      id: textIn(item["uuid"]) ?? "",
    };
  });
}

function itemFields(item: UnknownObject): Field[] {
  const details = objectMember(item, "details");
  const overview = objectMember(item, "overview");
  const urls = objectsIn(overview["urls"]).flatMap(({ url }) => textIn(url) ?? []);
  const tags = Array.isArray(overview["tags"]) ? overview["tags"].filter((tag) => typeof tag === "string") : [];
  return [
    ...objectsIn(details["loginFields"]).map(loginField),
    standardField("password", textIn(details["password"]) ?? ""),
    ...objectsIn(details["sections"]).flatMap(sectionFields),
    standardField("url", urls.length > 0 ? urls.join("\n") : (textIn(overview["url"]) ?? "")),
    standardField("notes", textIn(details["notesPlain"]) ?? ""),
    standardField("tags", tags.join("\n")),
  ];
}

/** A field of a page's form: only the user's name and the password have names of their own. */
function loginField({ designation, name, value }: UnknownObject): Field {
  const label = textIn(name) ?? "";
  if (designation === "username" || designation === "password")
    return standardField(designation, plainText(value), label);
  return { name: ["form", label], value: plainText(value) };
}

function sectionFields({ title, fields }: UnknownObject): Field[] {
  const section = textIn(title) ?? "";
  return objectsIn(fields).flatMap((field) => {
    const label = textIn(field["title"]) ?? textIn(field["id"]) ?? "";
    return Object.entries(objectMember(field, "value")).flatMap(([kind, content]): Field[] => {
      const place = section === "" ? [label] : [section, label];
      if (kind === "totp") return [standardField("totp", textIn(content) ?? "", place.join("/"))];
      return readValues(kind, content).map(([name, value]) => ({ name: [...place, ...name], value }));
    });
  });
}

/** A value is an object whose one member says what kind it is. */
function readValues(kind: string, content: unknown): [name: string[], value: string][] {
  if (kind === "file") return [];
  if (kind === "date") return [[[], formatDate(content)]];
  if (kind === "sshKey" && isObject(content)) return [[[], textIn(content["privateKey"]) ?? ""]];
  if (Array.isArray(content)) return [[[], content.map(plainText).join("\n")]];
  if (!isObject(content)) return [[[], plainText(content)]];
  return Object.entries(content).map(([name, text]) => [[name], plainText(text)]);
}

/** 1Password keeps a date as seconds since 1970. */
function formatDate(content: unknown): string {
  const date = new Date(typeof content === "number" ? content * 1000 : Number.NaN);
  return Number.isNaN(date.getTime()) ? plainText(content) : date.toISOString().slice(0, 10);
}

function notImported(item: UnknownObject): string[] {
  const details = objectMember(item, "details");
  const sections = objectsIn(details["sections"]).flatMap((section) => objectsIn(section["fields"]));
  const hasFile =
    isObject(details["documentAttributes"]) || sections.some((field) => isObject(objectMember(field, "value")["file"]));
  return [
    ...(hasFile ? ["its files"] : []),
    ...(isObject(details["passkey"]) ? ["its passkey"] : []),
    ...(objectsIn(details["passwordHistory"]).length > 0 ? ["its password history"] : []),
  ];
}

function objectMember(object: UnknownObject, name: string): UnknownObject {
  const member = object[name];
  return isObject(member) ? member : {};
}
