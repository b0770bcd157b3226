/**
 * Parser of the CSV that password managers write. Each row becomes a folder, in its group and named by its title, with a
 * secret for each of its columns that is not empty.
 */
import { CsvError, parse } from "csv-parse/sync";
import { CommandFailure } from "../kit/errors.js";
import { printable } from "../kit/output.js";
import { type Dialect, dialects, knownColumns, recycleBins } from "./csv-dialects.js";
import { joinSources, type ParsedSource } from "./entry.js";
import { type Field, readSecrets, type SourceItem, standardField } from "./items.js";
import { referenceProblem } from "./keepass-references.js";

/** Upper bound for a header, in characters: a line of megabytes, such as a long value in dotenv, would be parsed for minutes. */
const maxHeaderLength = 65_536;

/** Returns the columns of a text's first line that is not empty, none for a line that is too long for a header. */
export function readHeader(text: string): string[] {
  try {
    const line = headerLine(text);
    if (line.length > maxHeaderLength) return [];
    return parse(line, { bom: true, delimiter: findDelimiter(text), relax_quotes: true })[0] ?? [];
  } catch (error) {
    if (error instanceof CsvError) return [];
    throw error;
  }
}

/** Returns the dialect that knows all columns; else a dialect that lacks only some of them; null for another file. */
export function findDialect(header: readonly string[]): Dialect | null {
  const fits = dialects.filter(({ needed }) => needed.every((name) => header.includes(name)));
  const isKnown = (dialect: Dialect) => unknownIn(header, dialect).every((name) => name === "");
  return fits.find(isKnown) ?? fits[0] ?? null;
}

function unknownIn(header: readonly string[], dialect: Dialect): string[] {
  const known = knownColumns(dialect);
  return header.filter((name) => !known.has(name));
}

const columnWords = new Set(
  dialects.flatMap((dialect) => [...knownColumns(dialect)]).map((name) => name.toLowerCase()),
);

/** DANGER: the first line of a file without a header is a login, whose password no message may quote. */
export function looksLikeHeader(header: readonly string[]): boolean {
  const names = header.filter((name) => columnWords.has(name.trim().toLowerCase()));
  return names.length >= 2 && header.every((name) => /^[\p{L}!*_ :/().-]{0,40}\d?$/u.test(name));
}

function headerLine(text: string): string {
  return /[^\r\n]+/.exec(text.replace(/^\uFEFF/, ""))?.[0] ?? "";
}

/** Spreadsheets of many countries write semicolons. */
function findDelimiter(text: string): string {
  const count = (delimiter: string) => headerLine(text).split(delimiter).length;
  return [";", "\t"].find((delimiter) => count(delimiter) > count(",")) ?? ",";
}

/** `dropped`: columns that may be lost. */
type CsvOptions = { readonly isGuessed: boolean; readonly dropped: readonly string[] };

/**
 * Reads the rows. `isGuessed`: the format was found out from the header, so an unknown column, even an empty one, shows that
 * another program wrote the file. @throws CommandFailure usage
 */
export function readCsv(text: string, file: string, dialect: Dialect, options: CsvOptions): ParsedSource {
  const [header = [], ...rows] = parseCsv(text, file);
  refuseUnreadable(header, rows, text, file);
  const missing = dialect.needed.filter((name) => !header.includes(name));
  if (missing.length > 0) {
    const problem = `${file} has no column ${missing.join(", ")}: it is not a CSV export of ${dialect.program}`;
    throw new CommandFailure("usage", problem);
  }
  const leftOut = leftOutColumns(header, rows, dialect, options, file);
  const records = rows.map((row) => {
    return new Map(header.map((name, i) => [name, options.dropped.includes(name) ? "" : (row[i] ?? "")]));
  });
  const hasOneRoot =
    dialect.format === "keepassxc" && new Set(records.map((record) => groupSegments(record, dialect)[0])).size === 1;
  const read = records.map((record, i) => readRow(record, i + 1, hasOneRoot ? 1 : 0, dialect));
  const items = read.filter((row) => typeof row !== "string");
  return joinSources([{ leftOut: [...leftOut, ...read.filter((row) => typeof row === "string")] }, readSecrets(items)]);
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

/** Returns the columns that are left out. @throws CommandFailure usage, for columns that would be lost silently */
function leftOutColumns(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  dialect: Dialect,
  { isGuessed, dropped }: CsvOptions,
  file: string,
): string[] {
  const hasValues = (name: string) => rows.some((row) => (row[header.indexOf(name)] ?? "") !== "");
  const foreign = dropped.find((name) => !header.includes(name));
  if (foreign !== undefined)
    throw new CommandFailure(
      "usage",
      `--drop ${printable(foreign)}: that column is not in the file; leave the flag out`,
    );
  const isLost = (name: string) => !dropped.includes(name) && ((isGuessed && name !== "") || hasValues(name));
  const lost = unknownIn(header, dialect).filter(isLost);
  if (lost.length > 0) {
    const named = lost.map((name) => (name === "" ? "one without a name" : printable(name))).join(", ");
    const remedy = "export another format, or leave them out with  --drop COLUMN  for each";
    throw new CommandFailure(
      "usage",
      `${file} has columns that ${dialect.program} does not write: ${named}: ${remedy}`,
    );
  }
  const isLeftOut = (name: string) => dropped.includes(name) || dialect.ignored.includes(name);
  return header.filter((name) => isLeftOut(name) && hasValues(name)).map((name) => `the column ${name}`);
}

/** Returns the item, or a text that names what is left out. `depth`: how many groups from the top are no folder. */
function readRow(record: Row, number: number, depth: number, dialect: Dialect): SourceItem | string {
  const title = record.get(dialect.title)?.trim() ?? "";
  const origin = `row ${number}${title === "" ? "" : ` (${title})`}`;
  const folders = groupSegments(record, dialect).slice(depth);
  if (isGroup(record, dialect)) return `${origin}: it is a group without a secret`;
  if (dialect.format === "keepassxc" && recycleBins.has(folders[0] ?? "")) return `${origin}: it is in the recycle bin`;
  const all = Object.entries(dialect.secrets).map(([name, column]) => makeField(name, record.get(column) ?? ""));
  const problems = all.map(({ value }) => referenceProblem(value));
  return {
    ...{ origin, title, folders, created: record.get(dialect.created ?? "") ?? "" },
    fields: all.filter((_, i) => problems[i] === null),
    refused: all.flatMap(({ name }, i) => {
      const problem = problems[i] ?? null;
      return problem === null ? [] : [{ origin: `${origin}, ${name.join("/")}`, problem }];
    }),
  };
}

function makeField(name: string, value: string): Field {
  const [first = "", ...label] = name.split("/");
  return first === "totp"
    ? standardField(first, value, label.join("/"))
    : { ...standardField(name, value), name: name.split("/") };
}

/** LastPass writes a row for each group, with this address and nothing else. */
function isGroup(record: Row, { secrets }: Dialect): boolean {
  const others = Object.values(secrets).filter((column) => column !== secrets["url"]);
  return record.get("url") === "http://group" && others.every((column) => (record.get(column) ?? "") === "");
}

function parseCsv(text: string, file: string): string[][] {
  try {
    return parse(text, {
      ...{ bom: true, skip_empty_lines: true, record_delimiter: ["\r\n", "\n", "\r"], delimiter: findDelimiter(text) },
      relax_column_count_less: true, // programs leave out empty fields at the end
    });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const line = "lines" in error ? `, line ${String(error["lines"])}` : ""; // the error's own text would quote the row
    throw new CommandFailure("usage", `${file} is not valid CSV (${error.code}${line})`);
  }
}

type Row = ReadonlyMap<string, string>;

function groupSegments(record: Row, { group }: Dialect): string[] {
  const text = group === undefined ? "" : (record.get(group.column) ?? "");
  return text === "" ? [] : text.split(group?.separator ?? "/");
}
