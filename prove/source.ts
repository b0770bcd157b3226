/** Where a vault's sealed bytes are: in files of a home (docs/on-disk.md, Names), or in rows of a database. */
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Home, missingAsNull, readPlain } from "./home.js";

export type Space = "secrets" | "trash" | "keys";

/** `read`: null when it was deleted since it was listed. */
export type Sealed = { readonly path: string; readonly read: () => Promise<Buffer | null> };

export type Stored = { readonly name: string; readonly bytes: Buffer };

export type Source = {
  readonly header: () => Promise<Buffer>;
  readonly list: (space: Space) => Promise<Sealed[]>;
  /** All that a database holds, names included; the files of a home are searched as files. */
  readonly rows: (() => AsyncIterable<Stored>) | null;
};

/** Runs one SQL statement; all columns come in PostgreSQL's text format. */
export type Query = (text: string, values: readonly (string | number)[]) => Promise<readonly Row[]>;
type Row = Readonly<Record<string, string | null>>;

/** A directory with a vault, by names in it: `entries` of a missing directory are none, a missing file is null. */
type Folder = Pick<Home, "read" | "entries">;

/** The vault of a home; with a header's file, the one in which that is. */
export function homeSource(home: () => Home, headerFile: string | null): Source {
  const [folder, vault] =
    headerFile === null
      ? [home, () => join("vault", currentVault(home()))]
      : [() => folderAt(dirname(headerFile)), () => ""];
  return {
    header: async () =>
      headerFile === null ? mustRead(folder(), join(vault(), "header.json")) : readPlain(headerFile),
    list: async (space) => sealedFiles(folder(), join(vault(), space), ""),
    rows: null,
  };
}

function currentVault(home: Home): string {
  const name = home.read("vault/current")?.toString("latin1").trim();
  if (name === undefined) throw new Unreadable("there is no vault yet: vault/current is missing");
  if (/^gen-\d+$/.test(name)) return name;
  throw new Unreadable("vault/current does not name a vault");
}

function folderAt(path: string): Folder {
  return {
    read: (name) => missingAsNull(() => readPlain(join(path, name))),
    entries: (name) => missingAsNull(() => readdirSync(join(path, name), { withFileTypes: true })) ?? [],
  };
}

function mustRead(folder: Folder, name: string): Buffer {
  const bytes = folder.read(name);
  if (bytes === null) throw new Unreadable(`${name}: no such file, so there is no vault yet`);
  return bytes;
}

function sealedFiles(folder: Folder, directory: string, prefix: string): Sealed[] {
  return folder.entries(directory).flatMap((entry) => {
    const file = join(directory, entry.name);
    if (entry.name.startsWith(".")) return [];
    if (entry.isDirectory()) return sealedFiles(folder, file, `${prefix}${decodeURIComponent(entry.name)}/`);
    if (!entry.name.endsWith(".sealed")) return [];
    const path = prefix + decodeURIComponent(entry.name.slice(0, -".sealed".length));
    return [{ path, read: async () => folder.read(file) }];
  });
}

/** Rows that are read in one query. */
const pageRows = 100;

export function databaseSource(ask: Query, headerFile: string | null): Source {
  const query: Query = (text, values) =>
    ask(text, values).catch((error: unknown) => {
      throw new Unreadable(`the database cannot be read: ${error instanceof Error ? error.message : "unknown error"}`);
    });
  const vault = "(SELECT vault FROM strongroom.current)";
  return {
    header: async () => {
      if (headerFile !== null) return readPlain(headerFile);
      const [row] = await query(`SELECT header FROM strongroom.vault WHERE id = ${vault}`, []);
      if (row === undefined) throw new Unreadable("the database has no vault yet");
      return decodeBytea(row["header"]);
    },
    list: async (space) => {
      const [from, values] =
        space === "secrets" ? ["secret WHERE ", []] : ["blob WHERE space = $1 AND ", [space] as const];
      const rows = await query(`SELECT path FROM strongroom.${from} vault = ${vault}`, values);
      return rows.map(({ path }) => ({
        path: path ?? "",
        read: async () => {
          const text = `SELECT blob FROM strongroom.${from} vault = ${vault} AND path = $${values.length + 1}`;
          const [row] = await query(text, [...values, path ?? ""]);
          return row === undefined ? null : decodeBytea(row["blob"]);
        },
      }));
    },
    rows: () => allRows(query),
  };
}

type Table = readonly [table: string, keys: readonly (readonly [name: string, type: string])[], bytes: string];

/** All tables that hold bytes, of earlier vaults as well, with the columns of their keys and of the bytes. */
const tables: readonly Table[] = [
  ["vault", [["id", "integer"]], "header"],
  [
    "secret",
    [
      ["vault", "integer"],
      ["path", "text"],
    ],
    "blob",
  ],
  [
    "blob",
    [
      ["vault", "integer"],
      ["space", "text"],
      ["path", "text"],
    ],
    "blob",
  ],
  [
    "document",
    [
      ["vault", "integer"],
      ["name", "text"],
    ],
    "bytes",
  ],
];

async function* allRows(query: Query): AsyncGenerator<Stored> {
  for (const table of tables) {
    for (let last: readonly string[] | null = []; last !== null; ) {
      const rows = await readPage(query, table, last);
      for (const { name, bytes } of rows) yield { name: `${table[0]} ${name.join(" ")}`, bytes };
      last = rows.length < pageRows ? null : (rows.at(-1)?.name ?? null);
    }
  }
}

/** @param last - key of the row before; empty for the first page */
async function readPage(query: Query, [table, keys, bytes]: Table, last: readonly string[]) {
  const names = keys.map(([name]) => name).join(", ");
  const casts = keys.map(([, type], i) => `$${i + 1}::${type}`).join(", ");
  const where = last.length === 0 ? "" : `WHERE (${names}) > (${casts})`;
  const text = `SELECT ${names}, ${bytes} AS bytes FROM strongroom.${table} ${where} ORDER BY ${names} LIMIT ${pageRows}`;
  const rows = await query(text, last);
  return rows.map((row) => ({ name: keys.map(([name]) => row[name] ?? ""), bytes: decodeBytea(row["bytes"]) }));
}

/** The text format of `bytea`. */
function decodeBytea(text: string | null | undefined): Buffer {
  return Buffer.from((text ?? "").replace(/^\\x/, ""), "hex");
}

/** A database that cannot be asked, or holds no vault. */
export class Unreadable extends Error {}
