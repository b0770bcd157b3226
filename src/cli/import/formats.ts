/**
 * The formats that `import` reads: a row says how a format is recognized, and reads it. Without `--format`, the first row that
 * recognizes a source reads it.
 */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { printable } from "../kit/output.js";
import { readInput, textOfInput } from "../kit/prompts/input.js";
import { isBitwarden, readBitwarden, readBitwardenArchive } from "./bitwarden.js";
import { type Dialect, dialects } from "./csv-dialects.js";
import { readDotenv } from "./dotenv-values.js";
import type { ParsedSource } from "./entry.js";
import { foreignProgram } from "./foreign.js";
import { readJson } from "./json.js";
import { isKeePass, readKeePass } from "./keepass.js";
import { type GpgOptions, passStoreDirectory, readPassStore } from "./pass.js";
import { isZip, memberNames } from "./zip.js";

type ImportOptions = GpgOptions & {
  /** Columns of a CSV file that may be lost. */
  readonly dropped: readonly string[];
  /** The values of a dotenv file are replaced by references afterwards. */
  readonly isRewritten: boolean;
};

/** A file, in the forms by which formats are recognized. */
type SourceFile = {
  /** The format's name in messages. */
  readonly name: string;
  readonly bytes: Buffer;
  /** Empty for an archive. */
  readonly text: string;
  /** Undefined for what is no JSON. */
  readonly json: unknown;
  /** The members of an archive. */
  readonly members: readonly string[];
  readonly options: ImportOptions;
  /** The format was not given. */
  readonly isGuessed: boolean;
};

type Format = {
  readonly name: string;
  readonly help: string;
  readonly recognizes: (file: SourceFile) => boolean | Promise<boolean>;
  readonly read: (file: SourceFile) => ParsedSource | Promise<ParsedSource>;
};

export const formats: readonly Format[] = [
  {
    name: "1password",
    help: "the .1pux: vault/title/username, password, totp, url, notes, and the fields of its sections; the vault only where there are several",
    recognizes: ({ members }) => members.includes("export.data"),
    read: async ({ bytes, name }) => (await import("./one-password.js")).readOnePassword(bytes, name),
  },
  {
    name: "bitwarden",
    help: "the unencrypted .json or .zip: folder/item/username, password, totp, url, notes, fields/…, a card's number, …",
    recognizes: ({ json, members }) => isBitwarden(json) || members.includes("data.json"),
    read: ({ bytes, text, name }) => (isZip(bytes) ? readBitwardenArchive(bytes, name) : readBitwarden(text, name)),
  },
  {
    name: "json",
    help: "the output of strongroom export --format json; or an object of strings, in which nested objects are folders",
    recognizes: ({ text }) => /^[{[]/.test(text.replace(/^\uFEFF/, "").trimStart()),
    read: ({ text, name, json, isGuessed }) => {
      const program = !isGuessed ? null : isOnePasswordInterchange(text) ? "1Password 7" : foreignProgram(json);
      if (program === null) return readJson(text, name);
      throw new CommandFailure(
        "usage",
        `${name} is an export of ${program}, which import does not read: export another format`,
      );
    },
  },
  {
    name: "keepass",
    help: "the .xml of KeePass or KeePassXC: group/title/username, password, url, notes, totp, fields/…; the root group is dropped, and the recycle bin is left out",
    recognizes: ({ text }) => isKeePass(text),
    read: ({ text, name }) => readKeePass(text, name),
  },
  ...dialects.map(csvFormat),
  {
    name: "dotenv",
    help: "NAME=value becomes the secret NAME",
    recognizes: ({ text }) => {
      const line = text.split(/\r?\n/).find((each) => !/^\s*(?:#|$)/.test(each)) ?? "";
      return /^\uFEFF?\s*(?:export\s+)?[\w.-]+\s*=/.test(line);
    },
    read: ({ text, name, options }) => readDotenv(text, name, options.isRewritten),
  },
];

export const formatNames: readonly string[] = ["pass", ...formats.map(({ name }) => name)];

function csvFormat(dialect: Dialect): Format {
  const { format, group, title, secrets } = dialect;
  const folders = group === undefined ? "" : `${group.column}/`;
  return {
    name: format,
    help: `the .csv of ${dialect.program}: ${folders}${title}/${Object.keys(secrets).join(", ")}`,
    recognizes: async ({ text }) => {
      const { findDialect, readHeader } = await import("./csv.js");
      return findDialect(readHeader(text)) === dialect;
    },
    read: async ({ text, name, isGuessed, options: { dropped } }) => {
      return (await import("./csv.js")).readCsv(text, name, dialect, { isGuessed, dropped });
    },
  };
}

type ReadSource = ParsedSource & { readonly format: string };

/** Reads and parses the whole source; without a format, finds it out from the file. @throws CommandFailure usage */
export async function readSource(
  io: Io,
  source: string | undefined,
  given: string | undefined,
  options: ImportOptions,
): Promise<ReadSource> {
  if (given === "pass" || (given === undefined && source !== undefined && (await isPassStore(source)))) {
    refuseDrop("pass", options);
    return { ...(await readPassStore(io, source ?? passStoreDirectory(io), options)), format: "pass" };
  }
  if (source === undefined) {
    throw new CommandFailure(
      "usage",
      `${given === undefined ? "import" : `--format ${given}`} needs a source: the file, or -`,
    );
  }
  const file = await readFile(io, source, given === undefined, options);
  const format = given === undefined ? await recognized(file) : formats.find(({ name }) => name === given);
  if (format === undefined) throw await unknownFormat(file);
  refuseDrop(format.name, options);
  return { ...(await format.read(file)), format: format.name };
}

/** @throws CommandFailure usage */
function refuseDrop(format: string, { dropped: [column] }: ImportOptions): void {
  if (column === undefined || dialects.some((dialect) => dialect.format === format)) return;
  throw new CommandFailure(
    "usage",
    `--drop ${printable(column)}: the format ${format} has no columns; leave the flag out`,
  );
}

async function readFile(io: Io, source: string, isGuessed: boolean, options: ImportOptions): Promise<SourceFile> {
  const name = source === "-" ? "standard input" : printable(source);
  const bytes = await readInput(io, source, name);
  if (isZip(bytes)) {
    return { name, bytes, text: "", json: undefined, members: memberNames(bytes, name), options, isGuessed };
  }
  refuseEncrypted(bytes, name);
  const text = textOfInput(bytes, name);
  return { name, bytes, text, json: jsonIn(text), members: [], options, isGuessed };
}

/** How files begin that no format can be read from. */
const encrypted: readonly (readonly [magic: Buffer, remedy: string])[] = [
  [Buffer.from("03d9a29a", "hex"), "is a KeePass database: export it as XML, and import that"],
  [Buffer.from("age-encryption.org/"), "is encrypted with age: decrypt it first"],
  [Buffer.from("-----BEGIN AGE ENCRYPTED FILE-----"), "is encrypted with age: decrypt it first"],
  [Buffer.from("-----BEGIN PGP MESSAGE-----"), "is encrypted with PGP: decrypt it first"],
];

/** @throws CommandFailure usage */
function refuseEncrypted(bytes: Buffer, name: string): void {
  const found = encrypted.find(([magic]) => bytes.subarray(0, magic.length).equals(magic));
  if (found !== undefined) throw new CommandFailure("usage", `${name} ${found[1]}`);
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch {
    return undefined;
  }
}

async function recognized(file: SourceFile): Promise<Format | undefined> {
  for (const format of formats) if (await format.recognizes(file)) return format;
  return undefined;
}

/** Whether a file is 1Password's older export, lines of JSON, with this mark after each. */
function isOnePasswordInterchange(text: string): boolean {
  return text.includes("***5642bee8-a5ff-11dc-8314-0800200c9a66***");
}

/** Names the columns of an unknown CSV file, unless they may be values. */
async function unknownFormat({ name, text, members }: SourceFile): Promise<CommandFailure> {
  const { readHeader, looksLikeHeader } = await import("./csv.js");
  const header = members.length > 0 ? [] : readHeader(text);
  const problem = looksLikeHeader(header)
    ? `no program that import knows writes the columns ${header.map((column) => printable(column)).join(", ")}`
    : "the format is none that import knows";
  return new CommandFailure("usage", `${name}: ${problem}: name it with --format`);
}

/** By the file that pass puts into each store. @throws CommandFailure usage for any other directory, whose files may be no secrets */
async function isPassStore(source: string): Promise<boolean> {
  if ((await stat(source).catch(() => null))?.isDirectory() !== true) return false;
  for (const mark of [".gpg-id", ".age-recipients"])
    if ((await stat(join(source, mark)).catch(() => null)) !== null) return true;
  const which = `${printable(source)} is a directory without .gpg-id`;
  throw new CommandFailure("usage", `${which}: name a file, or say --format pass if all of its files are secrets`);
}
