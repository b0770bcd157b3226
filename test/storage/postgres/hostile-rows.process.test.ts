/**
 * Rows edited by someone who can write the database and has no key: every request returns the secret's own value or an error
 * with a code, secrets whose rows are as they were stay readable, and doctor names what it can see.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { databaseEngine } from "../../../src/engines/postgres.js";
import { VaultError } from "../../../src/errors.js";
import { shared, temporaryDirectory } from "../../../tools/rig/clean-up.js";
import { needsPostgres, startPostgres } from "../../../tools/rig/postgres.js";
import { mustCreateToken, mustGet, mustPut, send } from "../../../tools/rig/test-client.js";
import { Random, runSeed } from "../../support/random.js";
import { type EditedDatabase, paths, startEditedDatabase } from "./edited-database.js";

const randomEdits = Number(process.env["STRONGROOM_HOSTILE_EDITS"] ?? 10);

/** Rows of hundreds of megabytes take seconds and gigabytes. */
const withHugeRows = process.env["STRONGROOM_HOSTILE_HUGE"] === "1";

const hostilePaths = [
  ".",
  "/",
  "../x",
  "a//b",
  "a\u0001\n\u001b[31m",
  "e\u0301",
  "",
  "\u{10ffff}",
  "b/c/d",
  "B/C",
] as const;
const refusedPaths = hostilePaths.slice(0, 6);

const quoted = (path: string) => `E'${path.replace(/[\\']/g, "\\$&")}'`;

type Edit = readonly [what: string, edit: string, finding: string | null];

const here = "WHERE vault = 1 AND path = 'a'";
const secret = (set: string) => `UPDATE strongroom.secret SET ${set} ${here}`;
const secretAt = (path: string) =>
  `INSERT INTO strongroom.secret SELECT vault, ${path}, blob FROM strongroom.secret ${here}`;
const header = (bytes: string) => `UPDATE strongroom.vault SET header = ${bytes}`;
const tokens = (bytes: string) => `UPDATE strongroom.document SET tag = 'x', bytes = ${bytes}`;
const replacedIn = (column: string, from: string, to: string) =>
  `convert_to(replace(convert_from(${column}, 'UTF8'), '${from}', '${to}'), 'UTF8')`;
const blanks = (count: number) => `decode(repeat('20', ${count}), 'hex')`;
const swapped = (table: string, one: string, other: string) =>
  `UPDATE strongroom.${table} s SET blob = o.blob FROM saved.${table} o
    WHERE (s.path, o.path) IN (('${one}', '${other}'), ('${other}', '${one}'))`;

/** `finding`: how what doctor says begins, its code first; null where only an older copy would show the edit. */
// biome-ignore format: the formatter would give each member a line of its own
const edits: readonly Edit[] = [
  ["a secret cut short", secret("blob = substring(blob FROM 1 FOR 40)"), "blob-damaged secret a"],
  ["an empty secret", secret("blob = ''"), "blob-damaged secret a"],
  ["a secret of a later format", secret("blob = set_byte(blob, 4, 9)"), "blob-damaged secret a"],
  ["metadata of 4 GiB", secret("blob = overlay(blob PLACING '\\xffffffff' FROM 6)"), "blob-damaged secret a"],
  ["two secrets swapped", swapped("secret", "a", "b/d"), "secret-damaged secret a"],
  ["a secret under another path", secretAt("'c'"), "secret-damaged secret c"],
  ["a key in place of a secret", "UPDATE strongroom.secret s SET blob = b.blob FROM strongroom.blob b WHERE (s.path, b.space, b.path) = ('b/d', 'keys', 'b/d')", "secret-damaged secret b/d"],
  ["a secret in place of a key", "UPDATE strongroom.blob b SET blob = s.blob FROM strongroom.secret s WHERE (s.path, b.space, b.path) = ('b/d', 'keys', 'b/d')", "secret-damaged key b/d"],
  ["two deleted secrets swapped", swapped("blob", "b/c", "gone/1"), "secret-damaged deleted secret b/c"],
  ["secrets deleted after the year 9999", "UPDATE strongroom.blob SET blob = set_byte(blob, 6, 20) WHERE space = 'trash'", "blob-damaged deleted secret b/c"],
  ["deleted secrets without their beginning", "UPDATE strongroom.blob SET blob = substring(blob FROM 5) WHERE space = 'trash'", "blob-damaged deleted secret b/c"],
  ["a secret of another vault", secret("vault = 7"), "foreign-row 1 rows of strongroom.secret"],
  ["a secret of a vault below zero", secret("vault = -1"), "foreign-row 1 rows of strongroom.secret"],
  ["an unknown space", "INSERT INTO strongroom.blob SELECT vault, '../../x', path, blob FROM strongroom.secret", "foreign-row 5 rows of strongroom.blob"],
  ["a path of 2,000 bytes", secretAt("repeat('x', 2000)"), "foreign-row 1 rows of strongroom.secret"],
  ["an empty path", secretAt("''"), "foreign-row 1 rows of strongroom.secret"],
  ...refusedPaths.map((path): Edit => [`the path ${JSON.stringify(path)}`, secretAt(quoted(path)), "forbidden-path secret"]),
  ["a count below zero", "UPDATE strongroom.secret_count SET secrets = -5", "count-wrong"],
  ["counts whose sum is above 2^63", "INSERT INTO strongroom.secret_count SELECT 1, i, 9223372036854775807 FROM generate_series(100, 200) i", "count-wrong"],
  ["no count", "DELETE FROM strongroom.secret_count", "count-wrong"],
  ["a header cut short", header("substring(header FROM 1 FOR 100)"), "header-damaged"],
  ["a header of 10 MB", header(`header || ${blanks(10_000_000)}`), "header-damaged"],
  ["a header of a later version", header(replacedIn("header", '"version":2', '"version":3')), "header-damaged"],
  ["another epoch", "UPDATE strongroom.current SET epoch = gen_random_uuid()", null],
  ["no current vault", "UPDATE strongroom.current SET vault = NULL", "foreign-row strongroom.current names no vault"],
  ["no row of the current vault", "DELETE FROM strongroom.current", "foreign-row strongroom.current has 0 rows"],
  ["tokens that are none", tokens("'{\"tokens\":[1,null,{}]}'"), "tokens-damaged"],
  ["tokens of 10 MB", tokens(`${blanks(10_000_000)} || bytes`), "tokens-damaged"],
  ["a token with more rights", tokens(replacedIn("bytes", '"get"', '"put"')), "token-refused"],
  ["a tag of 1 MB", "UPDATE strongroom.document SET tag = repeat('x', 1000000)", null],
  ["no tokens", "DELETE FROM strongroom.document", null],
];

const hugeEdits: readonly Edit[] = [
  ["a secret of 300 MB", secret(`blob = ${blanks(300_000_000)}`), "foreign-row 1 rows of strongroom.secret"],
  [
    "a deleted secret of 300 MB",
    `UPDATE strongroom.blob SET blob = ${blanks(300_000_000)} WHERE path = 'gone/1'`,
    "foreign-row",
  ],
  [
    "2,500 secrets with 32 KB of metadata each",
    `INSERT INTO strongroom.secret SELECT 1, 'm/' || i, overlay(substring(blob FROM 1 FOR 9) || ${blanks(32_768)}
      PLACING '\\x00007fff' FROM 6) FROM strongroom.secret, generate_series(1, 2500) i ${here}`,
    "blob-damaged secret m/1",
  ],
];

/** Statements that remove the constraints of the schema. */
const loosened = ["secret", "current", "vault", "document", "blob"].map(
  (table) => `ALTER TABLE strongroom.${table} DROP CONSTRAINT ${table}_pkey CASCADE`,
);
for (const column of ["secret.path", "secret.blob", "current.one", "current.epoch", "vault.header", "document.bytes"]) {
  const [table, name] = column.split(".");
  loosened.push(`ALTER TABLE strongroom.${table} ALTER ${name} DROP NOT NULL`);
}

// biome-ignore format: as above
const looseEdits: readonly Edit[] = [
  ["a secret that is null", secret("blob = NULL"), "foreign-row 1 rows of strongroom.secret"],
  ["a path that is null", secret("path = NULL"), "foreign-row 1 rows of strongroom.secret"],
  ["two rows of a secret", secretAt("path"), "unreadable secret a"],
  ["another secret's row before a secret's", `CREATE TEMP TABLE first AS SELECT vault, 'a' AS path, blob FROM strongroom.secret WHERE path = 'b/c' UNION ALL TABLE strongroom.secret;
    DELETE FROM strongroom.secret; INSERT INTO strongroom.secret TABLE first; DROP TABLE first`, "unreadable secret a"],
  ["two rows of the current vault", "INSERT INTO strongroom.current SELECT NULL, vault, epoch FROM strongroom.current", "foreign-row strongroom.current has 2 rows"],
  ["a current vault that does not exist", "UPDATE strongroom.current SET vault = 9", "foreign-row strongroom.current names no vault"],
  ["an epoch that is null", "UPDATE strongroom.current SET epoch = NULL", "foreign-row 1 rows of strongroom.current"],
  ["a header that is null", header("NULL"), "foreign-row strongroom.current names no vault"],
  ["tokens that are null", tokens("NULL"), null],
];

describe("a database with rows edited by hand", () => {
  before(function () {
    needsPostgres(this);
  });
  const postgres = shared(startPostgres);

  async function mustBeSeen(
    { edited, mustServeOwnValues, findings }: EditedDatabase,
    edit: string,
    finding: string | null,
  ) {
    await edited(edit, async () => {
      await mustServeOwnValues();
      const found = (await findings()).map(
        ({ code, path, message }) => `${code} ${path.split(/\/test\d+ ?/)[1]} ${message}`,
      );
      const said = found.map((each) => each.replace(/ +/, " "));
      if (finding !== null)
        expect(
          said.some((each) => each.startsWith(finding)),
          said.join("\n"),
        ).to.equal(true);
    });
  }

  describe("within the schema's constraints", () => {
    const database = shared(() => startEditedDatabase(postgres()));

    for (const [what, edit, finding] of [...edits, ...(withHugeRows ? hugeEdits : [])]) {
      it(`${what}: serves own values or an error; doctor says ${finding ?? "nothing"}`, async () => {
        await mustBeSeen(database(), edit, finding);
      });
    }

    it("gives a token whose record claims more rights none at all", async () => {
      const { server, edited, sql } = database();
      const put = (token: string) =>
        send(server, { method: "PUT", path: "/v1/secrets/new", body: { value: "x" }, token });
      await edited("SELECT", async () => {
        const { token } = await mustCreateToken(server, { name: "other", can: ["get"] });
        expect((await put(token)).status).to.equal(403);
        await sql(tokens(replacedIn("bytes", '"get"', '"put"')));
        expect((await put(token)).status).to.equal(401);
      });
    });

    it("responds to a client token with 503 when the document of the tokens is damaged", async () => {
      const { server, edited, sql } = database();
      await edited("SELECT", async () => {
        const { token } = await mustCreateToken(server, { name: "patient", can: ["get", "audit"] });
        await sql(tokens("'x'"));
        for (const path of ["secrets/a", "audit"]) {
          const { status, json } = await send(server, { path: `/v1/${path}`, token });
          expect({ status, code: json["code"] }, path).to.deep.equal({ status: 503, code: "UNAVAILABLE" });
          expect((await send(server, { path: `/v1/${path}` })).status, path).to.equal(200);
        }
        const { status, json } = await send(server, { path: "/v1/tokens" });
        expect({ status, code: json["code"] }).to.deep.equal({ status: 500, code: "INTEGRITY" });
        expect(json["error"]).to.contain("strongroom doctor shows where it is");
        expect((await send(server, { method: "POST", path: "/v1/tokens", body: { name: "x" } })).status).to.equal(500);
      });
    });

    it("writes no file outside of a snapshot, and none for a path that the server refuses", async () => {
      const { server, edited } = database();
      const outside = join(temporaryDirectory(), "outside");
      const one = (space: string, path: string) =>
        `INSERT INTO strongroom.blob SELECT vault, ${quoted(space)}, ${quoted(path)}, blob FROM strongroom.secret ${here}`;
      const up = one(`${"../".repeat(30)}${outside.slice(1)}`, "x");
      await edited([up, ...hostilePaths.map((path) => one("trash", path))].join("; "), async () => {
        const { json } = await send(server, { method: "POST", path: "/v1/snapshot" });
        expect(json).to.include({ secretCount: paths.length });
      });
      expect(existsSync(outside)).to.equal(false);
    });

    it("removes a damaged secret, and stores one in its place then", async () => {
      const { server, edited } = database();
      for (const damage of ["blob = ''", "blob = substring(blob FROM 1 FOR 40)", "blob = set_byte(blob, 60, 0)"]) {
        await edited(secret(damage), async () => {
          expect((await send(server, { method: "DELETE", path: "/v1/secrets/a" })).status).to.equal(200);
          await mustPut(server, "a", "new");
          expect((await mustGet(server, "a"))["value"]).to.equal("new");
        });
      }
    });

    it(`serves own values or an error after ${randomEdits} random edits, and doctor ends (seed ${runSeed})`, async function () {
      this.timeout(60_000 + 2_000 * randomEdits);
      const { edited, mustServeOwnValues, findings } = database();
      const random = new Random(runSeed);
      for (let i = 0; i < randomEdits; i++) {
        const edit = randomEdit(random);
        const judged = edited(edit, async () => {
          await mustServeOwnValues();
          await findings().catch(expectDamagedHeader);
        });
        await judged.catch((cause: unknown) => {
          throw new Error(`after ${edit}: ${String(cause)}`, { cause });
        });
      }
    });
  });

  describe("without the schema's constraints", () => {
    const database = shared(() => startEditedDatabase(postgres(), { loosened: loosened.join("; ") }));

    for (const [what, edit, finding] of looseEdits) {
      it(`${what}: serves own values or an error; doctor says ${finding ?? "nothing"}`, async () => {
        await mustBeSeen(database(), edit, finding);
      });
    }
  });

  it("a database with a schema version that no program writes is not opened", async () => {
    const loosened = "ALTER TABLE strongroom.schema_version ALTER version DROP NOT NULL";
    const { url, sql } = await startEditedDatabase(postgres(), { loosened });
    const open = () =>
      databaseEngine.open(url, null, { creates: true }).then((store) => store.close().then(() => "opened"), String);
    const changed = /by hand: restore a backup/;
    const versions: readonly (readonly [rows: string, message: RegExp])[] = [
      ["NULL", changed],
      ["-1", changed],
      ["0", changed],
      ["2", changed],
      ["4), (4", changed],
      ["5", /belongs to a newer strongroom/],
      ["2147483647", /belongs to a newer strongroom/],
    ];
    for (const [rows, message] of versions) {
      await sql(`DELETE FROM strongroom.schema_version; INSERT INTO strongroom.schema_version VALUES (${rows})`);
      expect(await open(), rows).to.match(message);
    }
    await sql("DELETE FROM strongroom.schema_version");
    expect(await open()).to.match(changed);
  });
});

/** Doctor reports a damaged header as such, or a wrong passphrase. */
function expectDamagedHeader(error: unknown): void {
  if (!(error instanceof VaultError) || !["INTEGRITY", "UNAUTHORIZED"].includes(error.code)) throw error;
}

function randomEdit(random: Random): string {
  const table = random.pick(["secret", "secret", "blob", "blob", "document", "vault"]);
  const row = `ctid = (SELECT ctid FROM strongroom.${table} ORDER BY random() LIMIT 1)`;
  if (table === "document") return `UPDATE strongroom.document SET ${damagedBytes(random, "bytes")}`;
  if (table === "vault") return `UPDATE strongroom.vault SET ${damagedBytes(random, "header")}`;
  const other = `(SELECT blob FROM strongroom.${random.pick(["secret", "blob"])} ORDER BY random() LIMIT 1)`;
  return random.pick([
    `UPDATE strongroom.${table} SET ${damagedBytes(random, "blob")} WHERE ${row}`,
    `UPDATE strongroom.${table} SET ${damagedBytes(random, "blob")} WHERE ${row}`,
    `UPDATE strongroom.${table} SET blob = ${other} WHERE ${row}`,
    `UPDATE strongroom.${table} SET path = ${quoted(random.pick(hostilePaths))} WHERE ${row}`,
    `UPDATE strongroom.${table} SET vault = ${random.pick([-1, 0, 2])} WHERE ${row}`,
    `DELETE FROM strongroom.${table} WHERE ${row}`,
    `INSERT INTO strongroom.secret SELECT vault, path || 'x', blob FROM strongroom.${table} ON CONFLICT DO NOTHING`,
    `INSERT INTO strongroom.blob SELECT vault, '${random.pick(["trash", "keys", "secrets", ""])}', path, blob
      FROM strongroom.secret ON CONFLICT DO NOTHING`,
  ]);
}

function damagedBytes(random: Random, column: string): string {
  return `${column} = ${random.pick([
    `substring(${column} FROM 1 FOR ${random.below(60)})`,
    `substring(${column} FROM 1 FOR (random() * length(${column}))::integer)`,
    `set_byte(${column}, (random() * (length(${column}) - 1))::integer, ${random.below(256)})`,
    `overlay(${column} PLACING '\\xffffffff' FROM ${1 + random.below(14)})`,
    `${column} || ${column}`,
  ])}`;
}
