/** Someone who edits rows of the database: no secret goes to a host that it was not bound to. */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import {
  bind,
  metadataEnd,
  sendThrough,
  spliced,
  startAgent,
  startUpstream,
  type Upstream,
  upstreamTrust,
} from "../../tools/rig/broker-rig.js";
import { databaseUrl, needsPostgres, startPostgres, type TestPostgres } from "../../tools/rig/postgres.js";
import { startTestServer, type TestServer, uncached } from "../../tools/rig/server.js";
import { mustInit, mustPut, mustSucceed, mustUnlock, send } from "../../tools/rig/test-client.js";
import { flipped } from "../support/damage.js";

const token = randomBytes(24).toString("hex");
const [a, b] = ["app/a", "app/b"] as const;

type Rows = Readonly<Record<string, Buffer>>;

describe("bindings in a database", function () {
  this.timeout(0);
  before(function () {
    needsPostgres(this);
  });

  it("edited or exchanged rows send no secret to another host, and no new value to a former one", async () => {
    const [former, hostA, hostB] = [await startUpstream(), await startUpstream(), await startUpstream()];
    const upstreams = [former, hostA, hostB];
    const cluster = await startPostgres();
    const database = await cluster.database();
    const start = () =>
      startTestServer({
        ...uncached,
        store: databaseUrl(cluster.port, database),
        token,
        brokerPort: 0,
        ...upstreamTrust(upstreams),
      });
    let server = await start();
    await mustInit(server);
    await mustPut(server, a, { value: "first-of-a" });
    await bind(server, a, place(former));
    const { [a]: older = Buffer.alloc(0) } = await readRows(cluster, database);
    mustSucceed(await send(server, { method: "DELETE", path: `/v1/uses/${a}?host=localhost` }));
    await mustPut(server, a, { value: "second-of-a" });
    await bind(server, a, place(hostA));
    await mustPut(server, b, { value: "only-of-b" });
    await bind(server, b, place(hostB));
    const rows = await readRows(cluster, database);
    const [blobA = Buffer.alloc(0), blobB = Buffer.alloc(0)] = [rows[a], rows[b]];

    /** Each edit, and what the three upstreams may see at most. */
    const edits: readonly (readonly [what: string, edited: Rows, sent: readonly (readonly string[])[]])[] = [
      ["nothing", {}, [[], ["second-of-a"], ["only-of-b"]]],
      ["each other's rows", { [a]: blobB, [b]: blobA }, [[], [], []]],
      ["the metadata of the other path", { [a]: spliced(blobB, blobA) }, [[], [], ["only-of-b"]]],
      ["the value of the other path", { [a]: spliced(blobA, blobB) }, [[], [], ["only-of-b"]]],
      ["older metadata for the new value", { [a]: spliced(older, blobA) }, [[], [], ["only-of-b"]]],
      ["newer metadata for the old value", { [a]: spliced(blobA, older) }, [[], [], ["only-of-b"]]],
      // A rollback of a whole row is not seen, and takes value and binding back together.
      ["the whole older row", { [a]: older }, [["first-of-a"], [], ["only-of-b"]]],
      ...Array.from({ length: 3 }, (_, i) => {
        const bit = Math.floor(((i + 0.5) * metadataEnd(blobA) * 8) / 3);
        return [`bit ${bit}`, { [a]: flipped(blobA, bit) }, [[], [], ["only-of-b"]]] as const;
      }),
    ];
    for (const [what, edited, sent] of edits) {
      await server.stop();
      await write(cluster, database, { ...rows, ...edited });
      server = await start(); // it knows no binding from before
      await mustUnlock(server);
      const got = await sentTo(server, upstreams);
      expect(got, what).to.deep.equal(sent.map((values) => values.map((value) => `Bearer ${value}`)));
    }
  });
});

function place({ port }: Upstream): object {
  return { host: "localhost", port, private: true };
}

async function readRows(cluster: TestPostgres, database: string): Promise<Rows> {
  const rows = await cluster.sql(database, "SELECT path, encode(blob, 'hex') AS blob FROM strongroom.secret");
  return Object.fromEntries(rows.map(({ path, blob }) => [String(path), Buffer.from(String(blob), "hex")]));
}

async function write(cluster: TestPostgres, database: string, rows: Rows): Promise<void> {
  for (const [path, blob] of Object.entries(rows)) {
    const set = `blob = decode('${blob.toString("hex")}', 'hex')`;
    await cluster.sql(database, `UPDATE strongroom.secret SET ${set} WHERE path = '${path}'`);
  }
}

/** Asks for each upstream as a new agent, and returns the credentials that each has seen. */
async function sentTo(server: TestServer, upstreams: readonly Upstream[]): Promise<unknown[][]> {
  const agent = await startAgent(server);
  for (const { port, seen } of upstreams) {
    seen.length = 0;
    const at = `localhost:${port}`;
    await sendThrough(agent, at, `GET /x HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\n\r\n`);
  }
  return upstreams.map(({ seen }) => seen.map(({ headers }) => headers["authorization"]));
}
