/**
 * Parser of the CSV that password managers write. Each row becomes a folder, in its group and named by its title, with a
 * secret for each of `username`, `password`, `url`, `notes` and `totp` that is not empty. Icons and times are not imported.
 */
import { CsvError, parse } from "csv-parse/sync";
import { CommandFailure } from "../kit/errors.js";
import { printable } from "../kit/output.js";
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
  /** Columns that a vault has no place for; those with values are listed. */
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
  safari: {
    program: "Safari",
    needed: ["Title", "URL", "Username", "Password", "OTPAuth"],
    secrets: { username: "Username", password: "Password", url: "URL", notes: "Notes", totp: "OTPAuth" },
    title: "Title",
    ignored: [],
  },
  "1password-csv": {
    program: "1Password",
    needed: ["Title", "Url", "Username", "Password", "OTPAuth"],
    secrets: {
      ...{ username: "Username", password: "Password", url: "Url", notes: "Notes", totp: "OTPAuth" },
      ...{ tags: "Tags", archived: "Archived" },
    },
    title: "Title",
    ignored: ["Favorite"],
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
  const header = parse(headerLine(text), { bom: true, delimiter: delimiterOf(text), relax_quotes: true })[0] ?? [];
  return csvFormats.find((format) => dialects[format].needed.every((name) => header.includes(name))) ?? null;
}

function headerLine(text: string): string {
  return /[^\r\n]+/.exec(text.replace(/^\uFEFF/, ""))?.[0] ?? "";
}

/** Spreadsheets of many countries write semicolons. */
function delimiterOf(text: string): string {
  const count = (delimiter: string) => headerLine(text).split(delimiter).length;
  return [";", "\t"].find((delimiter) => count(delimiter) > count(",")) ?? ",";
}

/** KeePassXC exports what was deleted. */
const recycleBins = [
  ...["Recycle Bin", "Papierkorb", "Corbeille", "Papelera de reciclaje", "Papelera", "Cestino", "Prullenbak", "Kosz"],
  ...["Lixeira", "Reciclagem", "Papperskorgen", "Papperskorg", "Papirkurv", "Papirkurven", "Roskakori", "Koš", "Kôš"],
  ...["Lomtár", "Çöp kutusu", "Geri Dönüşüm Kutusu", "Корзина", "Кошик", "Кошче", "Paperera", "Coș de gunoi"],
  ...["Coș de reciclare", "Prügikast", "Šiukšliadėžė", "Κάδος Ανακύκλωσης", "Κάδος ανακύκλωσης", "Tong Sampah"],
  ...["ごみ箱", "ゴミ箱", "回收站", "資源回收桶", "垃圾桶", "휴지통", "סל מיחזור", "سلة المحذوفات"],
];

/**
 * Reads the rows. `isGuessed`: the format was found out from the header, so an unknown column, even an empty one, shows that
 * another program wrote the file. `dropped`: columns that may be lost. @throws CommandFailure usage
 */
export function readCsv(text: string, file: string, format: CsvFormat, options: CsvOptions): ParsedSource {
  const dialect: Dialect = dialects[format];
  const [header = [], ...rows] = parseCsv(text, file);
  refuseUnreadable(header, rows, text, file);
  const missing = dialect.needed.filter((name) => !header.includes(name));
  if (missing.length > 0) {
    const problem = `${file} has no column ${missing.join(", ")}: it is not a CSV export of ${dialect.program}`;
    throw new CommandFailure("usage", problem);
  }
  const columns = columnsOf(header, rows, dialect, options, file);
  const records = rows.map((row) => new Map(header.map((name, i) => [name, row[i] ?? ""])));
  const hasOneRoot = format === "keepassxc" && new Set(records.map((record) => groupOf(record, dialect)[0])).size === 1;
  const read = records.map((record, i) => readRow(record, i + 1, hasOneRoot ? 1 : 0, dialect));
  return {
    found: read.flatMap((row) => ("secrets" in row ? row.secrets : [])),
    refused: read.flatMap((row) => ("refused" in row ? row.refused : [])),
    leftOut: [...columns, ...read.flatMap((row) => ("leftOut" in row ? row.leftOut : []))],
  };
}

/** @throws CommandFailure usage, for a column that is there twice, and a last row that is cut off */
function refuseUnreadable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  text: string,
  file: string,
): void {
  const twice = header.find((name, i) => header.indexOf(name) !== i);
  if (twice !== undefined)
    throw new CommandFailure("usage", `${file} has the column ${printable(twice)} twice: rename one of the two`);
  const isCut = !/[\r\n]$/.test(text) && (rows.at(-1)?.length ?? header.length) < header.length;
  if (isCut)
    throw new CommandFailure("usage", `${file} is not valid CSV: it ends within its last row; export it again`);
}

export type CsvOptions = { readonly isGuessed: boolean; readonly dropped: readonly string[] };

/** Returns the columns that are left out. @throws CommandFailure usage, for those that would be lost without a word */
function columnsOf(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  dialect: Dialect,
  { isGuessed, dropped }: CsvOptions,
  file: string,
): string[] {
  const { secrets, needed, ignored, title, group, created } = dialect;
  const kept: readonly (string | undefined)[] = [...Object.values(secrets), ...needed, title, group?.column, created];
  const hasValues = (name: string, i: number) => rows.some((row) => (row[i] ?? "") !== "") && header[i] === name;
  const isLost = (name: string, i: number) =>
    !kept.includes(name) && !ignored.includes(name) && (isGuessed || hasValues(name, i));
  const foreign = dropped.find((name) => kept.includes(name) || !header.includes(name));
  if (foreign !== undefined) {
    const why = header.includes(foreign) ? "is stored" : "is not in the file";
    throw new CommandFailure("usage", `--drop ${printable(foreign)}: that column ${why}; leave the flag out`);
  }
  const lost = header.filter((name, i) => isLost(name, i) && !dropped.includes(name));
  if (lost.length > 0) {
    const named = lost.map((name) => printable(name)).join(", ");
    const remedy = "export another format, or leave them out with  --drop COLUMN  for each";
    throw new CommandFailure(
      "usage",
      `${file} has columns that ${dialect.program} does not write: ${named}: ${remedy}`,
    );
  }
  return header.filter((name, i) => !kept.includes(name) && hasValues(name, i)).map((name) => `the column ${name}`);
}

type ReadRow = { readonly secrets: ImportEntry[] } | { readonly refused: Refused } | { readonly leftOut: string };

/** `depth`: how many groups from the top are left out of the path. */
function readRow(record: Row, number: number, depth: number, dialect: Dialect): ReadRow {
  const title = titleOf(record, dialect);
  const origin = `row ${number}${title === "" ? "" : ` (${title})`}`;
  const groups = groupOf(record, dialect).slice(depth);
  if (isGroup(record, dialect)) return { leftOut: `${origin}: it is a group without a secret` };
  if (title === "") return { refused: { origin, problem: "it has no title" } };
  if (recycleBins.includes(groups[0] ?? "")) return { leftOut: `${origin}: it is in the recycle bin` };
  const secrets = secretsOf(record, { path: pathOfNames(...groups, title), origin }, dialect);
  return secrets.length === 0 ? { leftOut: `${origin}: it has only a title` } : { secrets };
}

/** LastPass writes a row for each group, with this address and nothing else. */
function isGroup(record: Row, { secrets }: Dialect): boolean {
  const others = Object.values(secrets).filter((column) => column !== secrets["url"]);
  return record.get("url") === "http://group" && others.every((column) => (record.get(column) ?? "") === "");
}

function parseCsv(text: string, file: string): string[][] {
  try {
    return parse(text, {
      ...{ bom: true, skip_empty_lines: true, record_delimiter: ["\r\n", "\n", "\r"], delimiter: delimiterOf(text) },
      relax_column_count_less: true, // programs leave out empty fields at the end
    });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const line = "lines" in error ? `, line ${String(error["lines"])}` : ""; // the error's own text would quote the row
    throw new CommandFailure("usage", `${file} is not valid CSV (${error.code}${line})`);
  }
}

type Row = ReadonlyMap<string, string>;

/** The host of the address, or the user's name, stands for a missing title. */
function titleOf(record: Row, { title, secrets }: Dialect): string {
  const given = record.get(title)?.trim() ?? "";
  if (given !== "") return given;
  const url = record.get(secrets["url"] ?? "") ?? "";
  return (URL.canParse(url) && new URL(url).host) || (record.get(secrets["username"] ?? "")?.trim() ?? "");
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
