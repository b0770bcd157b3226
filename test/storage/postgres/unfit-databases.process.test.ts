/** Databases that a server must not use, those that it warns of, and what one can do to it. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { expect } from "chai";
import { createLog } from "../../../src/log.js";
import { readConnectionUrl } from "../../../src/storage/postgres/connection-url.js";
import { PostgresStore } from "../../../src/storage/postgres/postgres-store.js";
import { later, shared } from "../../../tools/rig/clean-up.js";
import { databaseUrl, needsPostgres, startPostgres } from "../../../tools/rig/postgres.js";
import { bytes } from "../../support/bytes.js";

describe("databases that a store refuses or reports", () => {
  before(function () {
    needsPostgres(this);
  });
  const cluster = shared(startPostgres);

  /** Returns why the start was refused, or what was logged. */
  async function open(database: string, port = cluster().port, password?: string): Promise<string> {
    const lines: string[] = [];
    const log = createLog("warn", (line) => lines.push(line), Date.now);
    try {
      const target = readConnectionUrl(databaseUrl(port, database));
      const options = { target, poolSize: 2, log, snapshotsAt: null, creates: true };
      await (await PostgresStore.open({ ...options, ...(password !== undefined && { password }) })).close();
      return lines.join("");
    } catch (error) {
      return String(error);
    }
  }

  it("a database whose schema is of a newer version is refused", async () => {
    const name = await cluster().database();
    expect(await open(name)).to.equal("");
    await cluster().sql(name, "UPDATE strongroom.schema_version SET version = version + 1");
    expect(await open(name)).to.match(/^StartError: the database belongs to a newer strongroom: /);
  });

  it("a database that publishes all tables gets its schema, and updates of it", async () => {
    const name = await cluster().database();
    await cluster().sql(name, "CREATE PUBLICATION everything FOR ALL TABLES");
    expect(await open(name)).to.equal("");
    await cluster().sql(
      name,
      `ALTER TABLE strongroom.schema_version REPLICA IDENTITY DEFAULT; DROP PUBLICATION everything;
      DROP FUNCTION strongroom.start_vault_with, strongroom.replace_header_with;
      UPDATE strongroom.schema_version SET version = 3; CREATE PUBLICATION everything FOR ALL TABLES`,
    );
    expect(await open(name)).to.equal("");
    expect(await cluster().sql(name, "SELECT version FROM strongroom.schema_version")).to.deep.equal([{ version: 4 }]);
  });

  it("a read-only database without the tables is refused", async () => {
    const name = await cluster().database();
    await cluster().sql("postgres", `ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    expect(await open(name)).to.match(/\(25006\): it is read-only: connect to the primary, or reset default_/);
  });

  it("a database in another encoding than UTF8 is refused", async () => {
    await cluster().sql("postgres", "CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0");
    expect(await open("ascii")).to.match(/^StartError: the database's encoding is not UTF8: /);
  });

  it("a connection pooler that drops the session's settings is refused", async () => {
    const name = await cluster().database();
    const port = await listening((client) => {
      const server = connect(cluster().port, "127.0.0.1");
      client.once("data", (startup) => {
        server.write(withoutOptions(startup));
        client.pipe(server);
      });
      server.pipe(client);
    });
    expect(await open(name, port)).to.match(/^StartError: a connection pooler .*: connect directly to the database$/);
  });

  for (const [method, request] of [
    ["in clear", Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3])],
    ["as MD5", Buffer.from([0x52, 0, 0, 0, 12, 0, 0, 0, 5, 1, 2, 3, 4])],
  ] as const) {
    it(`a server that asks for the password ${method} without TLS is refused, and gets none`, async () => {
      let received = "";
      const port = await listening((client) => {
        client.once("data", () => {
          client.write(request);
          client.on("data", (more) => {
            received += more.toString("latin1");
          });
        });
      });
      expect(await open("vault", port, "s3cr3t")).to.match(/in clear or as MD5, without TLS: use scram-sha-256 /);
      expect(received.startsWith("p"), "a message with a password").to.equal(false);
    });
  }

  it("a store runs no function that another role has put into the schema public", async () => {
    const name = await cluster().database();
    const target = readConnectionUrl(databaseUrl(cluster().port, name));
    const log = createLog("error", () => {}, Date.now);
    const store = await PostgresStore.open({ target, poolSize: 2, log, snapshotsAt: null, creates: true });
    later(() => store.close());
    await store.startNewVault(bytes("header"));
    await cluster().sql(
      name,
      `CREATE TABLE public.ran (as_whom text); GRANT ALL ON public.ran TO public; CREATE ROLE guest; GRANT CREATE ON SCHEMA public TO guest;
      SET ROLE guest; CREATE FUNCTION public.unnest(text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO public.ran VALUES (current_user); RETURN QUERY SELECT pg_catalog.unnest($1); END $$;`,
    );
    const result = await store.commit(["a", "b"].map((path) => ({ path, blob: bytes("sealed") })));
    expect(result).to.deep.equal({ committed: true });
    expect(await cluster().sql(name, "SELECT * FROM public.ran")).to.deep.equal([]);
  });

  it("a database whose commits do not wait for the disk is reported, and one without fsync is refused", async () => {
    const name = await cluster().database();
    for (const [setting, answer] of [
      ["synchronous_commit=off", /"event":"not-durable"/],
      ["fsync=off", /^StartError: the database runs with fsync=off /],
    ] as const) {
      await cluster().kill();
      await cluster().start([setting]);
      expect(await open(name), setting).to.match(answer);
    }
  });
});

/** Returns the port of a server that calls back for each connection. */
async function listening(connected: (client: Socket) => void): Promise<number> {
  const clients = new Set<Socket>();
  const server = createServer((client) => {
    clients.add(client);
    client.on("error", () => {});
    connected(client);
  }).listen(0, "127.0.0.1");
  later(() => {
    for (const client of clients) client.destroy();
    server.close();
  });
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** A startup message without its parameter `options`, as a pooler passes it on. */
function withoutOptions(startup: Buffer): Buffer {
  const texts = startup.toString("latin1", 8).split("\0");
  const kept: string[] = [];
  for (let at = 0; at + 1 < texts.length; at += 2) {
    const [name = "", value = ""] = texts.slice(at, at + 2);
    if (name !== "" && name !== "options") kept.push(name, value);
  }
  const body = Buffer.from(`${kept.join("\0")}\0\0`, "latin1");
  const length = Buffer.alloc(4);
  length.writeUInt32BE(8 + body.length);
  return Buffer.concat([length, startup.subarray(4, 8), body]);
}
