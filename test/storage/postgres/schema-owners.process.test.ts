/** Schemas that another role owns, or has put code into, which would run with the server's rights. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { Client } from "pg";
import { databaseEngine } from "../../../src/engines/postgres.js";
import { createLog } from "../../../src/log.js";
import { readConnectionUrl } from "../../../src/storage/postgres/connection-url.js";
import { PostgresStore } from "../../../src/storage/postgres/postgres-store.js";
import { shared } from "../../../tools/rig/clean-up.js";
import { databaseUrl, needsPostgres, startPostgres } from "../../../tools/rig/postgres.js";
import { bytes } from "../../support/bytes.js";
import { run } from "../../support/command-here.js";

const tables = ["schema_version", "vault", "current", "secret", "secret_count", "document", "blob"];
const functionNames = [
  ...["head", "change", "change_by_tag", "count_added", "commit_one", "commit_many", "start_vault", "replace_header"],
  ...["write_document", "is_as", "change_beside", "keeps", "commit_spaces", "start_vault_with", "replace_header_with"],
];

/** Statements that make a role the owner of the schema and all that is in it. */
function givenTo(role: string): string {
  return [
    `ALTER SCHEMA strongroom OWNER TO ${role}`,
    ...tables.map((table) => `ALTER TABLE strongroom.${table} OWNER TO ${role}`),
    ...functionNames.map((name) => `ALTER FUNCTION strongroom.${name} OWNER TO ${role}`),
  ].join("; ");
}

const ran = `BEGIN INSERT INTO public.ran VALUES (current_user); RETURN NULL; END`;

/** Code of the role mallory in a schema: how it gets there, and how the refusal names it. */
// biome-ignore format: the formatter would give each member a line of its own
const traps: readonly (readonly [what: string, owner: "mallory" | "strongroom", edit: string, named: RegExp])[] = [
  ["a trigger", "mallory", "CREATE TRIGGER t AFTER INSERT ON strongroom.secret EXECUTE FUNCTION public.trap()", /the trigger t of strongroom\.secret/],
  ["a trigger on another role's table", "strongroom", "GRANT USAGE ON SCHEMA strongroom TO mallory; GRANT TRIGGER ON strongroom.secret TO mallory; SET ROLE mallory; CREATE TRIGGER t AFTER INSERT ON strongroom.secret EXECUTE FUNCTION public.trap()", /the trigger t of strongroom\.secret/],
  ["a rule", "mallory", "CREATE RULE r AS ON INSERT TO strongroom.secret DO ALSO SELECT public.run()", /the rule r of strongroom\.secret/],
  ["a view in place of a table", "mallory", "ALTER TABLE strongroom.current RENAME TO hidden; SET ROLE mallory; CREATE VIEW strongroom.current AS SELECT h.*, public.run() FROM strongroom.hidden h", /the view strongroom\.current/],
  ["a view beside the tables", "mallory", "SET ROLE mallory; CREATE VIEW strongroom.extra AS SELECT public.run()", /the view strongroom\.extra/],
  ["a view in another role's schema", "strongroom", "GRANT ALL ON SCHEMA strongroom TO mallory; SET ROLE mallory; CREATE VIEW strongroom.extra AS SELECT public.run()", /the view strongroom\.extra/],
  ["row security", "mallory", "CREATE POLICY p ON strongroom.secret USING (public.run() IS NULL); ALTER TABLE strongroom.secret ENABLE ROW LEVEL SECURITY", /the policy p of strongroom\.secret/],
  ["a default", "mallory", "ALTER TABLE strongroom.vault ALTER created_at SET DEFAULT public.run()", /the default of strongroom\.vault\.created_at/],
  ["a new column with a default", "mallory", "ALTER TABLE strongroom.secret ADD x timestamptz DEFAULT public.run()", /the default of strongroom\.secret\.x/],
  ["a generated column", "mallory", "ALTER TABLE strongroom.secret ADD x integer GENERATED ALWAYS AS (public.length_of(path)) STORED", /the default of strongroom\.secret\.x/],
  ["a constraint", "mallory", "ALTER TABLE strongroom.secret ADD CONSTRAINT c CHECK (public.length_of(path) > 0)", /the constraint c of strongroom\.secret/],
  ["an index on an expression", "mallory", "CREATE INDEX i ON strongroom.secret (public.length_of(path))", /the index strongroom\.i/],
  ["an index with a condition", "mallory", "CREATE INDEX i ON strongroom.secret (vault) WHERE public.length_of(path) > 0", /the index strongroom\.i/],
  ["a column of a type of its own", "mallory", "CREATE DOMAIN public.checked AS text CHECK (public.length_of(VALUE) > 0); ALTER TABLE strongroom.document ALTER tag TYPE public.checked", /the type of strongroom\.document\.tag/],
  ["an inheriting table", "mallory", "CREATE TABLE public.child () INHERITS (strongroom.blob); ALTER TABLE public.child OWNER TO mallory", /public\.child, which inherits from strongroom\.blob/],
  ["a reference", "strongroom", "GRANT USAGE ON SCHEMA strongroom TO mallory; GRANT REFERENCES ON strongroom.secret TO mallory; SET ROLE mallory; CREATE TABLE public.referring (vault integer, path text COLLATE \"C\", FOREIGN KEY (vault, path) REFERENCES strongroom.secret ON DELETE CASCADE)", /the constraint referring_vault_path_fkey of public\.referring/],
  ["a function with another body", "mallory", "CREATE OR REPLACE FUNCTION strongroom.keeps(in_vault integer, in_space text, in_path text, expected text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM public.run(); RETURN true; END $$", /the function strongroom\.keeps/],
  ["a function with a setting", "mallory", "ALTER FUNCTION strongroom.commit_one SET search_path = public", /the function strongroom\.commit_one/],
  ["a function with a parameter of its own type", "mallory", "CREATE DOMAIN public.checked AS text CHECK (public.length_of(VALUE) > 0); DO $do$ BEGIN EXECUTE format('CREATE FUNCTION strongroom.keeps(in_vault integer, in_space text, in_path public.checked, expected text) RETURNS boolean LANGUAGE plpgsql AS %L', (SELECT prosrc FROM pg_proc WHERE proname = 'keeps')); END $do$; ALTER FUNCTION strongroom.keeps(integer, text, public.checked, text) OWNER TO mallory", /the function strongroom\.keeps/],
  ["a function of another name in another role's schema", "strongroom", "GRANT ALL ON SCHEMA strongroom TO mallory; SET ROLE mallory; CREATE FUNCTION strongroom.commit_one(text, text, bytea, text) RETURNS text LANGUAGE sql AS 'SELECT public.run()::text'", /the function strongroom\.commit_one/],
];

describe("the owners of the database's schema", () => {
  before(function () {
    needsPostgres(this);
  });
  const cluster = shared(async () => {
    const postgres = await startPostgres();
    const roles = ["mallory", "server", "owner", "team"].map((role) => `CREATE ROLE ${role} LOGIN`);
    await postgres.sql("postgres", `${roles.join("; ")}; GRANT team TO server`);
    return postgres;
  });

  /** Returns why the opening was refused, or what was logged. */
  async function open(database: string, { user = "strongroom", creates = true } = {}): Promise<string> {
    const lines: string[] = [];
    const log = createLog("warn", (line) => lines.push(line), Date.now);
    try {
      const target = readConnectionUrl(databaseUrl(cluster().port, database).replace("strongroom", user));
      const store = await PostgresStore.open({ target, poolSize: 2, log, snapshotsAt: null, creates });
      await store.close();
      return lines.join("");
    } catch (error) {
      return String(error);
    }
  }

  async function createDatabase(owner: string): Promise<string> {
    const name = await cluster().database();
    await cluster().sql("postgres", `ALTER DATABASE ${name} OWNER TO ${owner}`);
    return name;
  }

  /** Returns the name of a database with a vault, in which mallory can use functions of its own. */
  async function createVault(owner: string, schemaOwner = owner): Promise<string> {
    const name = await createDatabase(owner);
    const target = readConnectionUrl(databaseUrl(cluster().port, name));
    const log = createLog("error", () => {}, Date.now);
    const store = await PostgresStore.open({ target, poolSize: 2, log, snapshotsAt: null, creates: true });
    await store.startNewVault(bytes("header"));
    await store.close();
    await cluster().sql(
      name,
      `CREATE TABLE public.ran (as_whom text); GRANT ALL ON public.ran TO public;
      GRANT CREATE, USAGE ON SCHEMA public TO mallory; SET ROLE mallory;
      CREATE FUNCTION public.trap() RETURNS trigger LANGUAGE plpgsql AS $$ ${ran} $$;
      CREATE FUNCTION public.run() RETURNS timestamptz LANGUAGE plpgsql AS $$ ${ran} $$;
      CREATE FUNCTION public.length_of(text) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS $$ ${ran} $$;
      RESET ROLE; ${givenTo(schemaOwner)}`,
    );
    return name;
  }

  describe("a schema made by another role", () => {
    for (const creates of [true, false]) {
      it(`another role's schema without a vault is refused, ${creates ? "for a server" : "for reading"}`, async () => {
        const name = await createDatabase("owner");
        await cluster().sql(name, "CREATE SCHEMA strongroom AUTHORIZATION mallory");
        const outcome = await open(name, { creates });
        expect(outcome).to.match(/^StartError: the schema strongroom in the database belongs to the role mallory, /);
        expect(outcome).to.contain("DROP SCHEMA strongroom CASCADE");
        expect(
          await cluster().sql(
            name,
            "SELECT relname FROM pg_class WHERE relowner = 'strongroom'::regrole AND relnamespace = 'strongroom'::regnamespace",
          ),
        ).to.deep.equal([]);
      });
    }

    it("another role's schema with all tables and no vault is refused", async () => {
      const name = await createDatabase("owner");
      expect(await open(name)).to.equal("");
      await cluster().sql(name, givenTo("mallory"));
      expect(await open(name)).to.match(
        /^StartError: the schema strongroom in the database belongs to the role mallory, /,
      );
    });

    it("a schema with one table of another role is refused", async () => {
      const name = await createDatabase("owner");
      await cluster().sql(
        name,
        `CREATE SCHEMA strongroom; CREATE TABLE strongroom.schema_version (version integer);
        INSERT INTO strongroom.schema_version VALUES (0); ALTER TABLE strongroom.schema_version OWNER TO mallory`,
      );
      expect(await open(name)).to.match(
        /^StartError: strongroom\.schema_version in the database belongs to the role mallory, /,
      );
    });

    it("a schema that another role creates at the same moment is refused", async () => {
      const name = await createDatabase("owner");
      await cluster().sql(name, `GRANT CREATE ON DATABASE ${name} TO mallory`);
      const client = new Client({
        connectionString: databaseUrl(cluster().port, name).replace("strongroom", "mallory"),
      });
      await client.connect();
      await client.query("BEGIN; CREATE SCHEMA strongroom");
      const outcome = open(name);
      const waiting = `SELECT FROM pg_stat_activity WHERE datname = '${name}' AND wait_event_type = 'Lock'`;
      while ((await cluster().sql(name, waiting)).length === 0) await sleep(20);
      await client.query("COMMIT");
      await client.end();
      expect(await outcome).to.match(/^StartError: .*another user has just created the schema strongroom: start again/);
      expect(await open(name)).to.match(/belongs to the role mallory/);
    });

    it("another role's schema runs none of its code before the refusal", async () => {
      const name = await createVault("owner");
      await cluster().sql(
        name,
        `DROP SCHEMA strongroom CASCADE; CREATE SCHEMA strongroom AUTHORIZATION mallory; SET ROLE mallory;
        CREATE FUNCTION strongroom.ran() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.ran VALUES (current_user); RETURN 4; END $$;
        CREATE VIEW strongroom.schema_version AS SELECT strongroom.ran() AS version`,
      );
      for (const creates of [true, false]) expect(await open(name, { creates })).to.match(/^StartError: .*mallory/);
      expect(await cluster().sql(name, "SELECT * FROM public.ran")).to.deep.equal([]);
    });
  });

  describe("a schema with a vault", () => {
    const trusted: readonly (readonly [whose: string, of: string, role: string, user: string])[] = [
      ["the user's own", "owner", "server", "server"],
      ["the database owner's", "owner", "owner", "server"],
      ["a superuser's", "owner", "strongroom", "server"],
      ["a role's that the user is a member of", "owner", "team", "server"],
      ["the role's that stands for the database's owner", "owner", "pg_database_owner", "server"],
    ];
    for (const [whose, of, role, user] of trusted) {
      it(`a schema that is ${whose} is opened without a warning`, async () => {
        const name = await createVault(of, role);
        const rights = "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA strongroom";
        await cluster().sql(name, `GRANT USAGE ON SCHEMA strongroom TO server; GRANT ${rights} TO server`);
        expect(await open(name, { user })).to.equal("");
      });
    }

    for (const [of, role] of [
      ["owner", "mallory"],
      ["owner", "team"], // the user is a superuser here, whom membership tells nothing
    ] as const) {
      it(`the owner ${role} of a schema is named in one warning, and by doctor`, async () => {
        const name = await createVault(of, role);
        const logged = await open(name);
        expect(logged.match(/"event"/g)).to.have.length(1);
        expect(logged).to.contain('"event":"foreign-owner"').and.to.contain(`belongs to the role ${role}`);
        expect(logged).to.contain(`REASSIGN OWNED BY ${role} TO owner`);
        const { code, stdout } = await run(["doctor", "--store", databaseUrl(cluster().port, name)]);
        expect(code).to.equal(12);
        expect(stdout).to.contain("(foreign-owner)").and.to.contain(`belongs to the role ${role}`);
      });
    }

    it("a foreign owner is named in a warning where the database quotes all names", async () => {
      const name = await createVault("owner", "mallory");
      await cluster().sql(name, `ALTER DATABASE ${name} SET quote_all_identifiers = on`);
      expect(await open(name))
        .to.contain('"event":"foreign-owner"')
        .and.to.contain("belongs to the role mallory");
    });

    for (const [what, owner, edit, named] of traps) {
      it(`a schema with ${what} of another role is refused, regardless of the owner of the schema`, async () => {
        const name = await createVault("owner", owner);
        await cluster().sql(name, edit);
        for (const creates of [true, false]) {
          const outcome = await open(name, { creates });
          expect(outcome).to.match(/^StartError: the role mallory has put code into the schema strongroom /);
          expect(outcome).to.match(named);
        }
        const queries = await databaseEngine.openQueries(databaseUrl(cluster().port, name), null);
        const outcome = await queries.query("SELECT FROM strongroom.current", []).catch(String);
        expect(outcome).to.match(/^StartError: the role mallory/);
        await queries.close();
        expect(await cluster().sql(name, "SELECT * FROM public.ran")).to.deep.equal([]);
      });
    }

    it("a schema with a trigger of the database's owner is opened", async () => {
      const name = await createVault("owner");
      await cluster().sql(
        name,
        `CREATE FUNCTION strongroom.noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
        ALTER FUNCTION strongroom.noted OWNER TO owner; CREATE TRIGGER t BEFORE INSERT ON strongroom.secret FOR EACH ROW EXECUTE FUNCTION strongroom.noted()`,
      );
      expect(await open(name)).to.equal("");
    });
  });
});
