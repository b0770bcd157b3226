/**
 * Parser of KeePassXC's CSV. Each row becomes a folder, in its group and named by its title, with a secret for each of
 * `username`, `password`, `url`, `notes` and `totp` that is not empty. The root group is dropped; icon and times are not
 * imported.
 */
import { CsvError, parse } from "csv-parse/sync";
import { CommandFailure } from "../lib/errors.js";
import {
  type ImportEntry,
  type Item,
  type Mark,
  oneTimeMark,
  type ParsedSource,
  pathOfNames,
  type Refused,
} from "./entry.js";

const kept = ["Username", "Password", "URL", "Notes", "TOTP"];
const marks: Readonly<Record<string, Mark>> = { Password: { type: "password" }, TOTP: oneTimeMark };
const needed = ["Group", "Title", "Password"];
const known = [...needed, ...kept, "Icon", "Last Modified", "Created"];

/** @throws CommandFailure usage */
export function readKeePassXc(text: string, file: string): ParsedSource {
  const [header = [], ...rows] = parseCsv(text, file);
  const missing = needed.filter((name) => !header.includes(name));
  if (missing.length > 0) {
    throw new CommandFailure(
      "usage",
      `${file} has no column ${missing.join(", ")}: it is not a CSV export of KeePassXC`,
    );
  }
  const records = rows.map((row) => new Map(header.map((name, i) => [name, row[i] ?? ""])));
  const roots = new Set(records.map((record) => groupOf(record)[0]));
  const found: ImportEntry[] = [];
  const refused: Refused[] = [];
  const leftOut = header.filter((name) => !known.includes(name)).map((name) => `the column ${name}`);
  for (const [i, record] of records.entries()) {
    const title = record.get("Title")?.trim() ?? "";
    const origin = `row ${i + 1}${title === "" ? "" : ` (${title})`}`;
    const groups = groupOf(record).slice(roots.size === 1 ? 1 : 0);
    const secrets = secretsOf(record, pathOfNames(...groups, title), origin);
    if (title === "") refused.push({ origin, problem: "it has no title" });
    else if (secrets.length === 0) leftOut.push(`${origin}: it has only a title`);
    else found.push(...secrets);
  }
  return { found, refused, leftOut };
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

function groupOf(record: ReadonlyMap<string, string>): string[] {
  return record.get("Group")?.split("/") ?? [];
}

function secretsOf(record: ReadonlyMap<string, string>, path: string, origin: string): ImportEntry[] {
  const item: Item = { path, created: record.get("Created") ?? "", id: "" };
  return kept.flatMap((column) => {
    const value = record.get(column) ?? "";
    const name = column.toLowerCase();
    return value === ""
      ? []
      : [{ path: `${path}/${name}`, value, ...marks[column], origin: `${origin}, ${name}`, item }];
  });
}
