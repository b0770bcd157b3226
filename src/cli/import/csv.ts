/**
 * Parser of the CSV that password managers write. Each row becomes a folder, in its group and named by its title, with a
 * secret for each of `username`, `password`, `url`, `notes` and `totp` that is not empty. Icons and times are not imported.
 */
import { CsvError, parse } from "csv-parse/sync";
import { CommandFailure } from "../kit/errors.js";
import {
  type ImportEntry,
  type Item,
  type Mark,
  oneTimeMark,
  type ParsedSource,
  pathOfNames,
  type Refused,
} from "./entry.js";

/** The columns of a program's export. */
type Dialect = {
  readonly program: string;
  readonly needed: readonly string[];
  /** The column of each secret of a row. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly title: string;
  readonly group?: { readonly column: string; readonly separator: string };
  readonly created?: string;
  /** Columns that are dropped without a word. */
  readonly ignored: readonly string[];
};

const dialects = {
  keepassxc: {
    program: "KeePassXC",
    needed: ["Group", "Title", "Password"],
    secrets: { username: "Username", password: "Password", url: "URL", notes: "Notes", totp: "TOTP" },
    title: "Title",
    group: { column: "Group", separator: "/" },
    created: "Created",
    ignored: ["Icon", "Last Modified"],
  },
  lastpass: {
    program: "LastPass",
    needed: ["url", "username", "password", "name", "grouping"],
    secrets: { username: "username", password: "password", url: "url", notes: "extra", totp: "totp" },
    title: "name",
    group: { column: "grouping", separator: "\\" },
    ignored: ["fav"],
  },
  browser: {
    program: "a browser",
    needed: ["url", "username", "password"],
    secrets: { username: "username", password: "password", url: "url", notes: "note" },
    title: "name",
    ignored: ["httpRealm", "formActionOrigin", "guid", "timeCreated", "timeLastUsed", "timePasswordChanged"],
  },
} as const satisfies Readonly<Record<string, Dialect>>;

export type CsvFormat = keyof typeof dialects;
export const csvFormats = Object.keys(dialects) as readonly CsvFormat[];

/** Returns the program that writes CSV with these columns; null for others. */
export function csvFormatOf(text: string): CsvFormat | null {
  const header = (text.replace(/^\uFEFF/, "").split(/\r?\n/, 1)[0] ?? "")
    .split(",")
    .map((name) => name.replace(/"/g, ""));
  return csvFormats.find((format) => dialects[format].needed.every((name) => header.includes(name))) ?? null;
}

/** KeePassXC exports what was deleted. */
const recycleBins = ["Recycle Bin", "Papierkorb", "Corbeille", "Papelera de reciclaje", "Cestino"];

/** @throws CommandFailure usage */
export function readCsv(text: string, file: string, format: CsvFormat): ParsedSource {
  const dialect: Dialect = dialects[format];
  const [header = [], ...rows] = parseCsv(text, file);
  const missing = dialect.needed.filter((name) => !header.includes(name));
  if (missing.length > 0) {
    const problem = `${file} has no column ${missing.join(", ")}: it is not a CSV export of ${dialect.program}`;
    throw new CommandFailure("usage", problem);
  }
  const records = rows.map((row) => new Map(header.map((name, i) => [name, row[i] ?? ""])));
  const hasOneRoot = format === "keepassxc" && new Set(records.map((record) => groupOf(record, dialect)[0])).size === 1;
  const read = records.map((record, i) => readRow(record, i + 1, hasOneRoot ? 1 : 0, dialect));
  const known = [
    ...Object.values(dialect.secrets),
    ...dialect.needed,
    ...dialect.ignored,
    dialect.title,
    dialect.created,
  ];
  const columns = header.filter((name) => !known.includes(name)).map((name) => `the column ${name}`);
  return {
    found: read.flatMap((row) => ("secrets" in row ? row.secrets : [])),
    refused: read.flatMap((row) => ("refused" in row ? row.refused : [])),
    leftOut: [...columns, ...read.flatMap((row) => ("leftOut" in row ? row.leftOut : []))],
  };
}

type ReadRow = { readonly secrets: ImportEntry[] } | { readonly refused: Refused } | { readonly leftOut: string };

/** `depth`: how many groups from the top are left out of the path. */
function readRow(record: Row, number: number, depth: number, dialect: Dialect): ReadRow {
  const title = titleOf(record, dialect);
  const origin = `row ${number}${title === "" ? "" : ` (${title})`}`;
  const groups = groupOf(record, dialect).slice(depth);
  if (title === "") return { refused: { origin, problem: "it has no title" } };
  if (recycleBins.includes(groups[0] ?? "")) return { leftOut: `${origin}: it is in the recycle bin` };
  const secrets = secretsOf(record, { path: pathOfNames(...groups, title), origin }, dialect);
  return secrets.length === 0 ? { leftOut: `${origin}: it has only a title` } : { secrets };
}

function parseCsv(text: string, file: string): string[][] {
  try {
    return parse(text, { bom: true, skip_empty_lines: true });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const line = "lines" in error ? `, line ${String(error["lines"])}` : ""; // the error's own text would quote the row
    throw new CommandFailure("usage", `${file} is not valid CSV (${error.code}${line})`);
  }
}

type Row = ReadonlyMap<string, string>;

/** A browser may name no title: the host of the address then stands for it. */
function titleOf(record: Row, { title, secrets }: Dialect): string {
  const given = record.get(title)?.trim() ?? "";
  const url = record.get(secrets["url"] ?? "") ?? "";
  return given === "" && URL.canParse(url) && title !== "Title" ? new URL(url).host : given;
}

function groupOf(record: Row, { group }: Dialect): string[] {
  const text = group === undefined ? "" : (record.get(group.column) ?? "");
  return text === "" ? [] : text.split(group?.separator ?? "/");
}

function secretsOf(record: Row, { path, origin }: { path: string; origin: string }, dialect: Dialect): ImportEntry[] {
  const item: Item = { path, created: record.get(dialect.created ?? "") ?? "", id: "" };
  return Object.entries(dialect.secrets).flatMap(([name, column]) => {
    const value = record.get(column) ?? "";
    return value === ""
      ? []
      : [{ path: `${path}/${name}`, value, ...markOf(name), origin: `${origin}, ${name}`, item }];
  });
}

function markOf(name: string): Mark {
  if (name === "totp") return oneTimeMark;
  return name === "password" ? { type: "password" } : {};
}
