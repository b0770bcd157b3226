/**
 * Everything in a file of each format comes out of the vault's plan, or is named: for items with any titles, equal names,
 * empty fields and all of Unicode.
 */
import { expect } from "chai";
import fc from "fast-check";
import { readBitwarden } from "../../src/cli/import/bitwarden.js";
import { readCsv } from "../../src/cli/import/csv.js";
import { dialects } from "../../src/cli/import/csv-dialects.js";
import { dotenvLine } from "../../src/cli/import/dotenv.js";
import { readDotenv } from "../../src/cli/import/dotenv-values.js";
import type { ParsedSource } from "../../src/cli/import/entry.js";
import { exportEnd, exportRow, exportStart, readJson } from "../../src/cli/import/json.js";
import { readKeePass } from "../../src/cli/import/keepass.js";
import { readOnePassword } from "../../src/cli/import/one-password.js";
import { planPaths } from "../../src/cli/import/plan.js";
import { problemOfPath } from "../../src/cli/kit/args/paths.js";
import type { Secret } from "../../src/client/client.js";
import { makeZip } from "./zip-archive.js";

const runs = Number(process.env["STRONGROOM_IMPORT_RUNS"] ?? "60");

/** Texts that have stopped an import, beside any other. */
const oddities = [
  "",
  " ",
  "/",
  "a/b",
  "/a/",
  "https://x.example/p/",
  "CORP\\svc",
  "..",
  ".",
  "con",
  "a\tb",
  "é",
  "e\u0301",
];
const odd = fc.constantFrom(...oddities, "untitled", "A-2", "A", "A", "fields", "password", "unnamed", "x".repeat(300));
const anyText = fc.oneof(
  odd,
  fc.string({ unit: "grapheme", maxLength: 12 }),
  fc.string({ unit: "binary", maxLength: 8 }),
);
/** Values that are told from all others by a number at their end. */
const anyValue = fc.oneof(
  fc.constant(""),
  fc.string({ unit: "grapheme", maxLength: 10 }),
  fc.constantFrom('"', "a,b", ";", "\n", "\r\n", "'", "{", "$"),
);

const items = fc.array(
  fc.record({
    title: anyText,
    folder: anyText,
    fields: fc.array(fc.record({ name: anyText, value: anyValue }), { maxLength: 4 }),
  }),
  { maxLength: 6 },
);
type Items = (typeof items extends fc.Arbitrary<infer T> ? T : never)[number][];

/** Makes every value that is not empty unlike all others. */
function marked(given: Items): Items {
  let n = 0;
  return given.map((item) => ({
    ...item,
    fields: item.fields.map(({ name, value }) => ({ name, value: value === "" ? "" : `${value}#${n++}` })),
  }));
}

/** Asserts that each value is stored once, at a valid path of its own, or that the messages name as many. */
function mustKeep(values: readonly string[], { found, refused }: ParsedSource): void {
  const plan = planPaths(found, "in/");
  const paths = plan.entries.map(({ path }) => path);
  expect(new Set(paths).size).to.equal(paths.length);
  expect(paths.filter((path) => problemOfPath(path) !== null)).to.deep.equal([]);
  const stored = plan.entries.map(({ value }) => value);
  const missing = values.filter((value) => !stored.includes(value));
  expect(missing.length, JSON.stringify(missing)).to.be.at.most(refused.length + plan.refused.length);
  for (const value of stored) expect(values).to.include(value);
}

function valuesIn(given: Items): string[] {
  return given.flatMap(({ fields }) => fields.map(({ value }) => value)).filter((value) => value !== "");
}

const xmlText = (text: string) => text.replace(/[&<>\r]/g, (character) => `&#${character.charCodeAt(0)};`);
const csvCell = (text: string) => `"${text.replaceAll('"', '""')}"`;

const writers: Readonly<Record<string, (given: Items) => ParsedSource>> = {
  bitwarden: (given) => {
    const folders = given.map(({ folder }, i) => ({ id: `f${i}`, name: folder }));
    const all = given.map(({ title, fields }, i) => ({ type: 2, name: title, folderId: `f${i}`, fields }));
    return readBitwarden(JSON.stringify({ encrypted: false, folders, items: all }), "x");
  },
  "1password": (given) => {
    const all = given.map(({ title, folder, fields }) => ({
      overview: { title },
      details: {
        sections: [
          { title: folder, fields: fields.map(({ name, value }) => ({ title: name, value: { string: value } })) },
        ],
      },
    }));
    const vaults = [{ attrs: { name: "V" }, items: all }];
    return readOnePassword(makeZip({ "export.data": JSON.stringify({ accounts: [{ vaults }] }) }, { method: 0 }), "x");
  },
  keepass: (given) => {
    const groups = given.map(({ title, folder, fields }) => {
      const strings = [["Title", title] as const, ...fields.map(({ name, value }) => [`PIN ${name}`, value] as const)];
      const rows = strings.map(([key, value]) => {
        return `<String><Key>${xmlText(key)}</Key><Value>${xmlText(value)}</Value></String>`;
      });
      return `<Group><Name>${xmlText(folder)}</Name><Entry>${rows.join("")}</Entry></Group>`;
    });
    return readKeePass(`<KeePassFile><Root><Group><Name>R</Name>${groups.join("")}</Group></Root></KeePassFile>`, "x");
  },
};

function secretWith(path: string, value: string): Secret {
  return { path, encoding: undefined, metadata: {}, reveal: () => value } as unknown as Secret;
}

describe("import of any items", () => {
  const check = (property: (given: Items) => void) => {
    fc.assert(
      fc.property(items, (given) => property(marked(given))),
      { numRuns: runs },
    );
  };

  for (const [format, read] of Object.entries(writers)) {
    it(`${format}: each value is stored, or named`, () => check((given) => mustKeep(valuesIn(given), read(given))));
  }

  for (const dialect of dialects) {
    it(`${dialect.format}: each value is stored, or named`, () => {
      check((given) => {
        const plain = Object.entries(dialect.secrets).filter(([name]) => !name.startsWith("totp"));
        const columns = [...new Set([...dialect.needed, dialect.title, ...plain.map(([, column]) => column)])];
        const values: string[] = [];
        const rows = given.map(({ title, folder, fields }) => {
          const cells = new Map(plain.map(([, column], i) => [column, fields[i]?.value.replaceAll("\0", "") ?? ""]));
          values.push(...[...cells.values()].filter((value) => value !== ""));
          cells.set(dialect.title, title);
          if (dialect.group !== undefined) cells.set(dialect.group.column, folder);
          return columns.map((column) => csvCell(cells.get(column) ?? "")).join(",");
        });
        const text = `${[columns.map(csvCell).join(","), ...rows].join("\n")}\n`;
        mustKeep(values, readCsv(text, "x", dialect, { isGuessed: true, dropped: [] }));
      });
    });
  }

  it("dotenv: a value that export writes is stored as it was", () => {
    check((given) => {
      const values = valuesIn(given);
      const lines = values.map((value, i) => dotenvLine(`N${i}`, value));
      const written = values.filter((_, i) => lines[i] !== null);
      const source = readDotenv(lines.filter((line) => line !== null).join(""), "x", false);
      mustKeep(written, source);
      expect(source.refused).to.deep.equal([]);
    });
  });

  it("json: a secret that export writes is stored as it was", () => {
    check((given) => {
      const values = valuesIn(given);
      const rows = values.map((value, i) => exportRow(secretWith(`s/${i}`, value)));
      const source = readJson(`${exportStart}${rows.join(",\n")}${exportEnd}`, "x");
      expect(source.found.map(({ value }) => value)).to.deep.equal(values);
    });
  });
});
