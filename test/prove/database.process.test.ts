/** `strongroom prove` on a server whose vault is in PostgreSQL: secrets, keys and rows, read by statements of its own. */
import { expect } from "chai";
import { checkDisk } from "../../prove/disk.js";
import { Home } from "../../prove/home.js";
import { databaseSource } from "../../prove/source.js";
import { databaseEngine } from "../../src/engines/postgres.js";
import { databaseUrl, needsPostgres, startPostgres, type TestPostgres } from "../../tools/rig/postgres.js";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { mustInit, mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";
import { listFailures, needsForeignMemory, prove } from "./run-prove.js";

describe("strongroom prove on PostgreSQL", function () {
  this.timeout(0);
  let postgres: TestPostgres;
  let server: ServerProcess;
  let store = "";
  before(async function () {
    needsForeignMemory.call(this);
    needsPostgres(this);
    postgres = await startPostgres();
    store = databaseUrl(postgres.port, await postgres.database());
    server = await startProcess(["--store", store]);
    await mustInit(server);
    for (let i = 0; i < 3; i++) await mustPut(server, `app/${i}`, `value number ${i}, long enough to search for`);
    const body = { type: "ed25519" };
    mustSucceed(await send(server, { method: "POST", path: "/v1/transit/keys/app/key", body }));
  });

  it("prove opens secrets and keys of a database, finds nothing elsewhere, and exits 0", async () => {
    const proven = await prove(server.home, "--store", store);
    expect([listFailures(proven), proven.code]).to.deep.equal([[], 0]);
    const found = Object.fromEntries(proven.report.checks.map((check) => [check.what, check.found]));
    expect(found["secrets opened from the documented format"]).to.equal(3);
    expect(found["of these, equal to what the server returns"]).to.equal(3);
    expect(found["transit keys opened from the documented format"]).to.equal(1);
    expect(found["rows of the database that hold a value"]).to.equal("no row");
  });

  it("prove names the row that holds a value", async () => {
    const name = new URL(store).pathname.slice(1);
    const stored = "value number 1, long enough";
    await postgres.sql(name, `INSERT INTO strongroom.document VALUES (1, 'note', 'the ${stored} to search for', 'x')`);
    const database = await databaseEngine.openQueries(store, null);
    const secrets = [stored, "value number 7, long enough"].map((text) => ({
      ...{ name: text, bytes: Buffer.from(text), isText: true, pieceBytes: 0 },
    }));
    const { checks } = await checkDisk(Home.open(server.home), null, secrets, databaseSource(database.query, null));
    await database.close();
    const rows = checks.filter(({ what }) => what.startsWith("rows")).map(({ found, holds }) => [found, holds]);
    expect(rows).to.deep.equal([
      ["document 1 note", false],
      ["no row", true],
    ]);
  });

  it("prove of a missing database exits 13 with the reason", async () => {
    const { code, report } = await prove(server.home, "--store", `${store}-missing`, "--as-attacker");
    expect([code, report.verdict]).to.deep.equal([13, "unknown"]);
    expect(report.reason).to.match(/^the database cannot be read: /);
  });
});
