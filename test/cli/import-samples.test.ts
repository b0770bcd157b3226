/**
 * The sample files of other projects, imported as they are: `npm run test:long -- imports` fetches them, and prints for each what
 * was stored and what was named. They are not kept here.
 */

import { expect } from "chai";
import { parse } from "csv-parse/sync";
import { findDialect } from "../../src/cli/import/csv.js";
import { segmentsFor } from "../../src/cli/import/names.js";
import { needs } from "../../tools/rig/needs.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustList } from "../../tools/rig/test-client.js";
import { onlyWith } from "../support/needs.js";
import { strongroom } from "./run-command.js";

type Project = {
  readonly project: string;
  readonly commit: string;
  readonly folder: string;
  /** The outcome of each: the format, values that are stored and parts that are named; or the words of a refusal. */
  readonly files: Readonly<Record<string, string>>;
};

const projects: readonly Project[] = [
  {
    project: "beemdevelopment/Aegis",
    commit: "59d5c640d6a2d0d16f243dbdd735758eed65bc63",
    folder: "app/src/test/resources/com/beemdevelopment/aegis/importers",
    files: {
      "2fas_authenticator.json": "is an export of 2FAS, which import does not read",
      "aegis_encrypted.json": "is an export of Aegis, which import does not read",
      "aegis_plain.json": "is an export of Aegis, which import does not read",
      "andotp_plain.json": "is an export of andOTP, which import does not read",
      "authenticator_plus.zip": "the format is none that import knows",
      "bitwarden.csv": "bitwarden-csv: 4 values, 1 named",
      "bitwarden.json": "bitwarden: 4 values, 0 named",
      "duo.json": "is an export of Duo Mobile, which import does not read",
      "freeotp.xml": "the format is none that import knows",
      "freeotp_plus.json": "is an export of FreeOTP, which import does not read",
      "proton_authenticator.json": "is an export of Proton Authenticator, which import does not read",
      "steam.json": "json: 11 values, 1 named",
      "stratum_plain.json": "is an export of Stratum, which import does not read",
    },
  },
  {
    project: "bkeepers/dotenv",
    commit: "34156bf400cd67387fa6ed9f146778f6a2f5f743",
    folder: "spec/fixtures",
    files: {
      ".env": "dotenv: 1 values, 0 named",
      ".env.development": "dotenv: 2 values, 0 named",
      ".env.development.local": "dotenv: 3 values, 0 named",
      ".env.local": "dotenv: 2 values, 0 named",
      ".env.test": "dotenv: 2 values, 0 named",
      "bom.env": "dotenv: 1 values, 0 named",
      "exported.env": "dotenv: 2 values, 0 named",
      "important.env": "dotenv: 3 values, 0 named",
      "plain.env": "dotenv: 6 values, 0 named",
      "quoted.env": "dotenv: 9 values, 0 named",
      "yaml.env": "the format is none that import knows",
    },
  },
  {
    project: "buttercup/buttercup-importer",
    commit: "5d1166ef18a2e7c5c0de537660e9277b041ea61b",
    folder: "test/resources",
    files: {
      "bitwarden.json": "bitwarden: 8 values, 1 named",
      "chrome_pass.csv": "browser: 24 values, 8 named",
      "keeper.json": "is an export of Keeper, which import does not read",
      "lastpass.csv": "lastpass: 14 values, 1 named",
      "test.csv": "no program that import knows writes the columns Notes",
    },
  },
  {
    project: "compose-spec/compose-go",
    commit: "e70e961c3a3acebf0800b882f1afb3dbf1fb74a2",
    folder: "dotenv/fixtures",
    files: {
      "equals.env": "dotenv: 1 values, 0 named",
      "exported.env": "dotenv: 2 values, 0 named",
      "invalid1.env": "line 7: not NAME=value",
      "plain.env": "dotenv: 9 values, 0 named",
      "quoted.env": "dotenv: 12 values, 1 named",
      "special.env": "dotenv: 3 values, 0 named",
      "substitutions-default.env": "dotenv: 1 values, 5 named",
      "substitutions.env": "dotenv: 4 values, 5 named",
      "unquoted.env": "dotenv: 5 values, 0 named",
      "utf8-bom.env": "dotenv: 9 values, 0 named",
    },
  },
  {
    project: "joho/godotenv",
    commit: "97a2850142438b3c357c1d3439e325181afdcc1d",
    folder: "fixtures",
    files: {
      "comments.env": "3 lines are unclear",
      "equals.env": "dotenv: 1 values, 0 named",
      "exported.env": "dotenv: 2 values, 0 named",
      "hyphen.env": "dotenv: 2 values, 0 named",
      "invalid1.env": "the format is none that import knows",
      "plain.env": "dotenv: 8 values, 0 named",
      "quoted.env": "dotenv: 13 values, 2 named",
      "substitutions.env": "dotenv: 4 values, 6 named",
    },
  },
  {
    project: "keepassxreboot/keepassxc",
    commit: "95bae8377c88f46fda565e09fee25d7ba684fe9e",
    folder: "tests/data",
    files: {
      "1PasswordExport.1pux": "1password: 39 values, 2 named",
      "bitwarden_encrypted_argon2id_export.json": "is encrypted: choose the unencrypted JSON export in Bitwarden",
      "bitwarden_encrypted_export.json": "is encrypted: choose the unencrypted JSON export in Bitwarden",
      "NewDatabase.xml": "keepass: 10 values, 9 named",
      "bitwarden_export.json": "bitwarden: 42 values, 0 named",
    },
  },
  {
    project: "motdotla/dotenv",
    commit: "2fc7eac8ad77cbd5f7814355c7fa352dbcf3c358",
    folder: "tests",
    files: {
      ".env": "line 31: INLINE_COMMENTS_SPACE: is the # a comment? Put the",
      ".env-multiline": "dotenv: 20 values, 0 named",
      ".env.bom": "dotenv: 2 values, 0 named",
      ".env.local": "dotenv: 2 values, 0 named",
      ".env.multiline": "dotenv: 20 values, 0 named",
    },
  },
  {
    project: "motdotla/dotenv-expand",
    commit: "0d8c9260deaa14bdff175c5da13ac6cc197c4ac2",
    folder: "tests",
    files: {
      ".env.test": "dotenv: 49 values, 66 named",
    },
  },
  {
    project: "roddhjav/pass-import",
    commit: "d1c92a9daa85bc68b3957e09e964cfaeb14457c6",
    folder: "tests/assets/db",
    files: {
      "1password.1pif": "is an export of 1Password 7, which import does not read",
      "1password.csv": "the format is none that import knows",
      "1password4.csv": "has columns that a browser does not write: title, notes",
      "1password8.csv": "1password-csv: 50 values, 3 named",
      "aegis.json": "is an export of Aegis, which import does not read",
      "andotp.json": "is an export of andOTP, which import does not read",
      "bitwarden-org.csv": "bitwarden-org-csv: 37 values, 4 named",
      "bitwarden-org.json": "bitwarden: 38 values, 3 named",
      "bitwarden-other.csv": "bitwarden-csv: 6 values, 2 named",
      "bitwarden-other.json": "bitwarden: 27 values, 1 named",
      "bitwarden.csv": "bitwarden-csv: 37 values, 4 named",
      "bitwarden.json": "bitwarden: 38 values, 3 named",
      "blur.csv": "no program that import knows writes the columns domain",
      "blur.json": "is an export of Blur, which import does not read",
      "buttercup.csv": "no program that import knows writes the columns !type",
      "chrome.csv": "browser: 36 values, 3 named",
      "dashlane.csv": "the format is none that import knows",
      "dashlane.json": "is an export of Dashlane, which import does not read",
      "encryptr.csv": "no program that import knows writes the columns Entry Type",
      "enpass.csv": "no program that import knows writes the columns Title",
      "enpass.json": "is an export of Enpass, which import does not read",
      "ff-password-exporter.csv": "no program that import knows writes the columns hostname",
      "firefox.csv": "browser: 37 values, 18 named",
      "freeotp.json": "is an export of FreeOTP, which import does not read",
      "gnomeauthenticator.json": "is an export of andOTP, which import does not read",
      "gorilla.csv": "gorilla: 36 values, 4 named",
      "keepass-other.xml": "keepass: 3 values, 2 named",
      "keepass.csv": "keepass-csv: 36 values, 3 named",
      "keepass.xml": "keepass: 37 values, 4 named",
      "keepassx2.csv": "keepassxc: 36 values, 3 named",
      "keeper.csv": "the format is none that import knows",
      "lastpass.csv": "lastpass: 36 values, 4 named",
      "myki.csv": "myki: 50 values, 2 named",
      "nordpass.csv": "nordpass: 36 values, 9 named",
      "padlock.csv": "padlock: 36 values, 3 named",
      "padlock.json": "is an export of Padlock, encrypted, which import does not read",
      "passman.csv": "has columns that a browser does not write: label, email",
      "passman.json": "is an export of Passman, which import does not read",
      "passpack.csv": "no program that import knows writes the columns Entry Name",
      "roboform.csv": "no program that import knows writes the columns Name, Url",
      "safeincloud.csv": "safeincloud: 36 values, 3 named",
      "saferpass.csv": "saferpass: 36 values, 6 named",
      "synology.csv": "synology: 36 values, 3 named",
      "upm.csv": "the format is none that import knows",
      "zoho.csv": "the format is none that import knows",
      "zoho.vault.csv": "no program that import knows writes the columns Secret",
    },
  },
  {
    project: "vlucas/phpdotenv",
    commit: "416df702837983f8d5ff48c9c3fee4f5f57b980b",
    folder: "tests/fixtures/env",
    files: {
      ".env": "dotenv: 4 values, 0 named",
      "assertions.env": "dotenv: 9 values, 0 named",
      "booleans.env": "dotenv: 29 values, 0 named",
      "commented.env": "line 10: FOOO: is the # a comment? Put the value in quotes",
      "empty.env": "the format is none that import knows",
      "example.env": "dotenv: 1 values, 0 named",
      "exported.env": "2 lines are unclear",
      "integers.env": "dotenv: 15 values, 0 named",
      "large.env": "dotenv: 2 values, 0 named",
      "multibyte.env": "dotenv: 3 values, 0 named",
      "multiline.env": "dotenv: 6 values, 1 named",
      "multiple.env": "line 3: MULTI1 is already set in line 1: remove one of the two",
      "nested.env": "dotenv: 13 values, 10 named",
      "quoted.env": "dotenv: 9 values, 3 named",
      "specialchars.env": "line 6: SPVAR6: is the # a comment? Put the value in quotes",
      "unicodevarnames.env": "the format is none that import knows",
      "utf8-with-bom-encoding.env": "dotenv: 3 values, 0 named",
      "windows.env": "is not UTF-8 text: name a text file",
    },
  },
];

type Summary = {
  readonly created: number;
  readonly refused: readonly unknown[];
  readonly leftOut: readonly string[];
  readonly remarks: readonly string[];
};

describe("import of other projects' sample files", () => {
  const server = shareLocalServer({}, mustInit);
  const itWithFiles = onlyWith("STRONGROOM_SAMPLES");
  const base = process.env["STRONGROOM_SAMPLES"] ?? "";

  async function fetched(url: string): Promise<Buffer | null> {
    const response = await fetch(url).catch(() => null);
    if (response === null) return null;
    expect(response.status, url).to.equal(200);
    return Buffer.from(await response.arrayBuffer());
  }

  /** Every cell of a CSV file is stored, is a part of a name, or is in a column that is named. */
  function mustHoldCells(text: string, stored: readonly string[], paths: readonly string[], said: string): void {
    const [header = [], ...rows] = parse(text, { bom: true, relax_column_count_less: true, skip_empty_lines: true });
    const { title = "", group, created } = findDialect(header) ?? {};
    for (const row of rows) {
      for (const [i, cell] of row.entries()) {
        const column = header[i] ?? "";
        const isName = [title, group?.column, created].includes(column);
        const names = cell
          .split(group?.separator ?? "/")
          .slice(-1)
          .flatMap(segmentsFor)
          .every((segment) => paths.some((path) => path.includes(segment)));
        const isHeld = stored.includes(cell) || said.includes(`the column ${column}`);
        expect(cell === "" || isHeld || (isName && (names || said.includes(cell))), `${column}: ${cell}`).to.equal(
          true,
        );
      }
    }
  }

  /** Returns how many items the file has, by a reader of its own. */
  function itemsIn(text: string, file: string): number {
    if (file.endsWith(".csv"))
      return parse(text, { bom: true, relax_column_count: true, skip_empty_lines: true }).length - 1;
    if (file.endsWith(".json"))
      return (JSON.parse(text.replace(/^\uFEFF/, "")) as { items?: unknown[] }).items?.length ?? 1;
    if (file.endsWith(".xml")) return text.replace(/<History>[\s\S]*?<\/History>/g, "").split("<Entry>").length - 1;
    return text.split("\n").filter((line) => /^\s*(?:export\s+)?[\w.-]+\s*[=:]/.test(line)).length;
  }

  async function outcome(bytes: Buffer, folder: string, file: string): Promise<string> {
    const imported = (flag: string) =>
      strongroom(server(), ["import", "--prefix", folder, flag, "-"], { input: bytes });
    const [dry, done] = [await imported("--dry-run"), await imported("--json")];
    if (!done.stdout.startsWith("{")) return dry.stderr.replace(/^strongroom: standard input[,:]?/, "").trim();
    const [, format = ""] = /the format is (\S+)/.exec(dry.stderr) ?? [];
    const { created, refused, leftOut, remarks } = JSON.parse(done.stdout) as Summary;
    const listed = (await mustList(server(), `?prefix=${folder}/`)).map(({ path }) => path);
    expect(listed).to.have.length(created);
    expect(done.code, "what is not stored changes the exit code").to.equal(refused.length === 0 ? 0 : 2);
    const stored = await Promise.all(listed.map(async (path) => String((await mustGet(server(), path))["value"])));
    if (file.endsWith(".csv")) mustHoldCells(bytes.toString("utf8"), stored, listed, JSON.stringify(leftOut));
    return `${format}: ${created} values, ${refused.length + leftOut.length + remarks.length} named`;
  }

  for (const { project, commit, folder, files } of projects) {
    itWithFiles(`imports those of ${project}`, async function (this: Mocha.Context) {
      let number = 0;
      for (const [file, wanted] of Object.entries(files)) {
        const bytes = await fetched(`${base}/${project}/${commit}/${folder}/${file}`);
        needs(this, bytes !== null, "the network");
        const found = await outcome(bytes, `${project.replace("/", "-")}-${number++}`, file);
        process.stdout.write(
          `      ${file}, ${itemsIn(bytes.toString("utf8"), file)} items: ${found.split("\n")[0]}\n`,
        );
        if (/ values, \d+ named$/.test(wanted)) expect(found, file).to.equal(wanted);
        else expect(found, file).to.contain(wanted);
      }
    });
  }
});
