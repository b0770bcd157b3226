/**
 * KeePass's references to fields of other entries, and its placeholders. A reference is resolved where KeePass and KeePassXC
 * find the same entry: by an identifier, or by a text that a single entry contains and that is this entry's whole field.
 *
 *   {REF:P@I:46C1B1FFBD4ABC4BB260C606190BAD20}   the password of the entry with this identifier
 *   {REF:U@T:Main}                               the user name of the entry with this title
 *   {USERNAME}, {S:Name}                         a field of the entry itself
 */

/** An entry's strings by KeePass's own names, and its identifier in upper-case hex. */
export type Referable = { readonly id: string; readonly strings: ReadonlyMap<string, string> };

const fieldNames: Readonly<Record<string, string>> = { T: "Title", U: "UserName", P: "Password", A: "URL", N: "Notes" };

/** Placeholders of the entry itself. */
const ownNames: Readonly<Record<string, string>> = {
  ...{ TITLE: "Title", USERNAME: "UserName", PASSWORD: "Password", URL: "URL", NOTES: "Notes" },
};

const reference = /\{REF:([TUPANI])@([TUPANIO]):([^}]*)\}/i;
const fillable = /\{REF:([TUPANI])@([TUPANIO]):([^}]*)\}|\{(TITLE|USERNAME|PASSWORD|URL|NOTES|S:[^}]+)\}/gi;

/** Placeholders of KeePass and KeePassXC that only these programs can fill in. */
const foreignPlaceholder =
  /\{(?:TOTP|TIMEOTP|HMACOTP|TAN|CMD:|ENV_|DB_|APPDIR|DOCDIR|BASE_|GROUP|DT_|UUID\}|URL:|T-REPLACE-RX:|T-CONV:|NEWPASSWORD|PASSWORD_ENC|PICKCHARS|PICKFIELD)[^}]*\}/i;

const noPlaceholder = { problem: "it has a placeholder, which only KeePass can fill in" };
const unresolved = "its {REF:…} refers to no single entry of this file: put the value in its place";

/** Returns why a value that stands alone, without the entries that it may refer to, is not stored; null when it is. */
export function referenceProblem(value: string): string | null {
  return reference.test(value) ? "its {REF:…} refers to another entry: export the XML, which has them all" : null;
}

/** A chain of references that is longer goes in a circle. */
const maxDepth = 10;

/** Returns the field with its references and placeholders filled in, or why that is not certain. */
export function resolvedField(
  name: string,
  entry: Referable,
  entries: readonly Referable[],
  depth = 0,
): string | { readonly problem: string } {
  const value = entry.strings.get(name) ?? "";
  if (!value.includes("{")) return value;
  if (depth > maxDepth) return { problem: "its {REF:…} refers to itself" };
  const isPlain = name === "Notes" || name === "Title"; // KeePass fills in nothing but references there
  if (!isPlain && foreignPlaceholder.test(value)) return noPlaceholder;
  let problem: string | null = null;
  const filled = value.replace(fillable, (whole, wanted?: string, by = "", text = "", own = "") => {
    if (problem !== null) return ""; // many references in a circle would multiply at each level
    const isOwn = wanted === undefined;
    const target = isOwn ? ownField(own, entry) : referredField(wanted, by, text, entries);
    if (isOwn && (isPlain || target === null || target.name === name)) return whole;
    const found = target === null ? { problem: unresolved } : fieldAt(target, entries, depth + 1);
    if (typeof found === "string") return found;
    problem = found.problem;
    return "";
  });
  return problem === null ? filled : { problem };
}

function fieldAt({ name, entry }: Target, entries: readonly Referable[], depth: number) {
  return name === null ? entry.id : resolvedField(name, entry, entries, depth);
}

/** `name`: null is the identifier. */
type Target = { readonly name: string | null; readonly entry: Referable };

function ownField(placeholder: string, entry: Referable): Target | null {
  const name = /^S:/i.test(placeholder) ? placeholder.slice(2) : (ownNames[placeholder.toUpperCase()] ?? "");
  return entry.strings.has(name) ? { name, entry } : null;
}

function referredField(wanted: string, by: string, text: string, entries: readonly Referable[]): Target | null {
  const entry = entryFor(by, text, entries);
  return entry === null ? null : { name: fieldNames[wanted.toUpperCase()] ?? null, entry };
}

function entryFor(by: string, text: string, entries: readonly Referable[]): Referable | null {
  const key = by.toUpperCase();
  if (key === "I")
    return single(entries.filter(({ id }) => id !== "" && id === text.replaceAll("-", "").toUpperCase()));
  const name = fieldNames[key];
  if (name === undefined || text === "") return null;
  const contains = ({ strings }: Referable) => (strings.get(name) ?? "").toLowerCase().includes(text.toLowerCase());
  const found = single(entries.filter(contains));
  return found?.strings.get(name) === text ? found : null;
}

function single(entries: readonly Referable[]): Referable | null {
  return entries.length === 1 ? (entries[0] ?? null) : null;
}
