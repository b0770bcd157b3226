/**
 * Parser of Bitwarden's unencrypted JSON, alone or in the archive with attachments. Each item becomes a folder inside its folder
 * (or collection), with a secret for each field that is not empty: `username`, `password`, `totp`, `url` (one per line),
 * `notes`, a card's `number`, `code`, `exp-month`, …, and custom fields under `fields/`. Passkeys, password history and
 * attachments are not imported.
 */
import { CommandFailure } from "../kit/errors.js";
import { isObject, objectsIn, textIn, textOfInput, type UnknownObject } from "../kit/prompts/input.js";
import { joinSources, type ParsedSource } from "./entry.js";
import { type Field, readSecrets, type SourceItem, standardField } from "./items.js";
import { parseJson, plainText } from "./json.js";
import { memberNames, readMember } from "./zip.js";

/** Members that hold an item's own fields, one for each kind of item. */
const kinds = ["login", "card", "identity", "sshKey"] as const;

/** Members of a login that are not secrets of their own. */
const ignored = ["uris", "fido2Credentials", "passwordRevisionDate", "autofillOnPageLoad"];

/** Whether a JSON document has what only Bitwarden's exports have, encrypted or not, old or new. */
export function isBitwarden(json: unknown): boolean {
  if (!isObject(json)) return false;
  if (typeof json["encrypted"] === "boolean" && ("items" in json || "data" in json)) return true;
  const items = objectsIn(json["items"]);
  const members = ["login", "secureNote", "card", "identity", "sshKey"];
  const hasOwn = items.some((item) => members.some((name) => name in item));
  return hasOwn && items.every(({ name }) => name === null || typeof name === "string");
}

/** @throws CommandFailure usage */
export function readBitwardenArchive(archive: Buffer, file: string): ParsedSource {
  const data = readMember(archive, "data.json", file);
  if (data === null) throw new CommandFailure("usage", `${file} has no data.json: it is not a Bitwarden export`);
  const attachments = memberNames(archive, file).filter((name) => name !== "data.json" && !name.endsWith("/"));
  const leftOut = attachments.map((name) => `the attachment ${name}`);
  return joinSources([{ leftOut }, readBitwarden(textOfInput(data, file), file)]);
}

/** @throws CommandFailure usage */
export function readBitwarden(text: string, file: string): ParsedSource {
  const json = parseJson(text, file);
  if (json["encrypted"] === true) {
    throw new CommandFailure("usage", `${file} is encrypted: choose the unencrypted JSON export in Bitwarden`);
  }
  if (!Array.isArray(json["items"]))
    throw new CommandFailure("usage", `${file} has no items: it is not a Bitwarden export`);
  const folders = namesById(json["folders"], json["collections"]);
  const items: readonly unknown[] = json["items"];
  const refused = items.flatMap((item, i) =>
    isObject(item) ? [] : [{ origin: `item ${i + 1}`, problem: "it is not an object" }],
  );
  const read = items.flatMap((item, i) => (isObject(item) ? [makeItem(item, i + 1, folders)] : []));
  return joinSources([{ refused }, readSecrets(read)]);
}

function namesById(...lists: readonly unknown[]): ReadonlyMap<unknown, string> {
  const named = lists.flatMap(objectsIn).map(({ id, name }) => [id, textIn(name) ?? ""] as const);
  return new Map(named);
}

function makeItem(item: UnknownObject, number: number, folders: ReadonlyMap<unknown, string>): SourceItem {
  const title = textIn(item["name"]) ?? "";
  const ids = [item["folderId"], ...(Array.isArray(item["collectionIds"]) ? item["collectionIds"] : [])];
  const folder = ids.map((id) => folders.get(id)).find((name) => name !== undefined);
  return {
    origin: `item ${number}${title === "" ? "" : ` (${title})`}`,
    title,
    folders: folder === undefined ? [] : [folder],
    fields: [...ownFields(item), ...customFields(item)],
    leftOut: notImported(item),
    created: textIn(item["creationDate"]) ?? "",
    id: textIn(item["id"]) ?? "",
  };
}

function ownFields(item: UnknownObject): Field[] {
  const members = kinds.flatMap((kind) => Object.entries(isObject(item[kind]) ? item[kind] : {}));
  const fields = members
    .filter(([name]) => !ignored.includes(name))
    .map(([name, value]) => standardField(withDashes(name), plainText(value)));
  const login = isObject(item["login"]) ? item["login"] : {};
  const urls = objectsIn(login["uris"]).flatMap(({ uri }) => textIn(uri) ?? []);
  return [...fields, standardField("url", urls.join("\n")), standardField("notes", plainText(item["notes"]))];
}

function customFields(item: UnknownObject): Field[] {
  return objectsIn(item["fields"]).map(({ name, value }) => {
    return { name: ["fields", textIn(name) ?? ""], value: plainText(value) };
  });
}

/** Spells expMonth as exp-month. */
function withDashes(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function notImported(item: UnknownObject): string[] {
  const login = isObject(item["login"]) ? item["login"] : {};
  const others = Object.keys(item).filter(
    (name) => isObject(item[name]) && !([...kinds, "secureNote"] as string[]).includes(name),
  );
  return [
    ...(objectsIn(login["fido2Credentials"]).length > 0 ? ["its passkeys"] : []),
    ...(objectsIn(item["passwordHistory"]).length > 0 ? ["its password history"] : []),
    ...(objectsIn(item["attachments"]).length > 0 ? ["its attachments"] : []),
    ...others.map((name) => `its ${name}`),
  ];
}
