/** Databases that a server must not use, and those that it warns of. */
import { expect } from "chai";
import { createLog } from "../../../src/log.js";
import { readConnectionUrl } from "../../../src/storage/postgres/connection-url.js";
import { PostgresStore } from "../../../src/storage/postgres/postgres-store.js";
import { shared } from "../../support/clean-up.js";
import { needsPostgres, startPostgres, urlOf } from "../../support/postgres.js";

describe("a store in PostgreSQL", () => {
  before(function () {
    needsPostgres(this);
  });
  const cluster = shared(startPostgres);

  /** Returns why the start was refused, or what was logged. */
  async function open(database: string): Promise<string> {
    const lines: string[] = [];
    const log = createLog("warn", (line) => lines.push(line), Date.now);
    try {
      const target = readConnectionUrl(urlOf(cluster().port, database));
      const options = { target, poolSize: 2, log, snapshotsAt: null, creates: true };
      await (await PostgresStore.open(options)).close();
      return lines.join("");
    } catch (error) {
      return String(error);
    }
  }

  it("is not opened when its schema is of a newer version", async () => {
    const name = await cluster().database();
    expect(await open(name)).to.equal("");
    await cluster().sql(name, "UPDATE strongroom.schema_version SET version = version + 1");
    expect(await open(name)).to.match(/^StartError: the database belongs to a newer strongroom: /);
  });

  it("is not opened in another encoding than UTF8", async () => {
    await cluster().sql("postgres", "CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0");
    expect(await open("ascii")).to.match(/^StartError: the database's encoding is not UTF8: /);
  });

  it("is opened with a warning when its commits do not wait for the disk, and not at all without fsync", async () => {
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
