/** The store contract on a real PostgreSQL; a fault is a connection that breaks before, or in, a message to it. */
import { expect } from "chai";
import type { VaultError } from "../../../src/errors.js";
import { createLog } from "../../../src/log.js";
import { blobTag } from "../../../src/storage/blob-tag.js";
import { readConnectionUrl } from "../../../src/storage/postgres/connection-url.js";
import { PostgresStore } from "../../../src/storage/postgres/postgres-store.js";
import { later, shared, temporaryDirectory } from "../../../tools/rig/clean-up.js";
import { databaseUrl, needsPostgres } from "../../../tools/rig/postgres.js";
import type { Bytes } from "../../../workers/protocol.js";
import { bytes } from "../../support/bytes.js";
import { faults } from "../../support/failing-files.js";
import { startSharedDatabase } from "../../support/shared-servers.js";
import { type Engine, header, type Rule, text } from "../contract-engine.js";
import { rules } from "../store-contract.js";

const silent = createLog("error", () => {}, Date.now);

/** Disks fail in more ways than connections do. */
function isForDatabases({ name }: Rule): boolean {
  return !faults.some((fault) => name.includes(` ${fault} `) && !["EIO", "SHORT"].includes(fault));
}

describe("the store contract in PostgreSQL", () => {
  before(function () {
    needsPostgres(this);
  });
  const database = shared(startSharedDatabase);

  async function postgresEngine(): Promise<Engine> {
    const { cluster, name, proxy } = database();
    await cluster.sql(name, "DROP SCHEMA IF EXISTS strongroom CASCADE");
    const snapshotsAt = temporaryDirectory();
    const opened: PostgresStore[] = [];
    const close = async (from: number, count: number) => {
      for (const store of opened.splice(from, Math.max(0, count))) await store.close();
    };
    later(() => close(0, opened.length));
    return {
      failOnce: (k, fault) => proxy.breakAt(k, fault === "SHORT" ? "half" : "before"),
      failFrom: (k) => proxy.breakFrom(k),
      repair: () => proxy.repair(),
      /** The first and the one before stay open: servers share a database. */
      async open() {
        const target = readConnectionUrl(databaseUrl(proxy.port, name));
        const store = await PostgresStore.open({ target, poolSize: 4, log: silent, snapshotsAt, creates: true });
        opened.push(store);
        await close(1, opened.length - 3);
        return store;
      },
    };
  }

  for (const { name, check } of rules.filter(isForDatabases)) it(name, async () => check(await postgresEngine()));
});

describe("a store in PostgreSQL that another server shares", () => {
  before(function () {
    needsPostgres(this);
  });
  const database = shared(startSharedDatabase);

  /** Two stores of one new vault; the second has been told of it. */
  async function openTwo(): Promise<[PostgresStore, PostgresStore]> {
    const { cluster, name } = database();
    await cluster.sql(name, "DROP SCHEMA IF EXISTS strongroom CASCADE");
    const target = readConnectionUrl(databaseUrl(cluster.port, name));
    const options = { target, poolSize: 4, log: silent, snapshotsAt: null, creates: true };
    const stores = [await PostgresStore.open(options), await PostgresStore.open(options)] as const;
    for (const store of stores) later(() => store.close());
    await stores[0].startNewVault(header);
    await stores[1].header();
    return [...stores];
  }

  it("a store calls back when another server has replaced vault or header, then refuses all but the header", async () => {
    for (const replace of ["vault", "header"] as const) {
      const [first, second] = await openTwo();
      const { generation } = second;
      let told = 0;
      second.onReplaced(() => void told++);
      if (replace === "vault") await first.startNewVault(bytes("next"));
      else await first.replaceHeader(bytes("next"), header);
      const calls: readonly (() => Promise<unknown>)[] = [
        () => second.read("a"),
        () => second.read("a", 21),
        () => second.count(),
        () => second.list("", "", 9),
        () => second.listWithHeads("", "", 9, 99),
        () => second.commit([{ path: "a", blob: bytes("late") }]),
        () =>
          second.commit([
            { path: "a", blob: bytes("late") },
            { path: "b", blob: null },
          ]),
        () => second.startNewVault(header),
        () => second.readDocument("tokens"),
        () => second.writeDocument("tokens", bytes("late"), null),
        () => second.confirm(),
      ];
      for (const [at, call] of calls.entries()) {
        expect(await call().catch((error: VaultError) => error.code), `call ${at}`).to.equal("VAULT_LOCKED");
        expect(told, `call ${at}`).to.equal(at + 1);
      }
      expect(await second.replaceHeader(bytes("late"), bytes("next"))).to.equal(false);
      expect(text(await second.header())).to.equal("next");
      expect([await second.count(), await second.readDocument("tokens")]).to.deep.equal([0, null]);
      expect(second.generation === generation).to.equal(replace === "header");
    }
  });

  it("a store commits on unchanged bases only, and names the one that changed", async () => {
    const [first, second] = await openTwo();
    await first.commit(["a", "b"].map((path) => ({ path, blob: makeBlob(path) })));
    const bases = ["a", "b"].map((path) => ({ path, tag: blobTag(makeBlob(path)) }));
    const changes = [{ path: "c", blob: makeBlob("c") }];
    expect(await second.commitOn(changes, bases)).to.deep.equal({ committed: true });
    await first.commit([{ path: "b", blob: makeBlob("other") }]);
    expect(await second.commitOn([{ path: "c", blob: null }], bases)).to.deep.equal({ committed: false, refused: 2 });
    await first.commit([{ path: "a", blob: null }]);
    expect(await second.commitOn([{ path: "c", blob: null }], bases)).to.deep.equal({ committed: false, refused: 1 });
    expect(await second.list("", "", 9)).to.deep.equal(["b", "c"]);
  });

  it("a store lists names with heads that end with the metadata", async () => {
    const [first, second] = await openTwo();
    await first.commit(
      ["a/1", "a/2", "b", "short"].map((path) => ({ path, blob: path === "short" ? bytes("x") : makeBlob(path) })),
    );
    const seen = async (prefix: string, limit: number, first: number) => {
      const listed = await second.listWithHeads(prefix, "", limit, first);
      return listed.map(({ path, head }) => [path, Buffer.from(head).toString("latin1")]);
    };
    const expectedHead = (path: string) =>
      Buffer.from(makeBlob(path))
        .toString("latin1")
        .slice(0, 9 + 40);
    expect(await seen("", 3, 999)).to.deep.equal(["a/1", "a/2", "b"].map((path) => [path, expectedHead(path)]));
    expect(await seen("a/", 9, 20)).to.deep.equal(
      ["a/1", "a/2"].map((path) => [path, expectedHead(path).slice(0, 20)]),
    );
    expect(await seen("s", 9, 999)).to.deep.equal([["short", "x"]]);
    expect(await seen("none", 9, 999)).to.deep.equal([]);
  });

  it("one of several servers at a time does what one is enough for", async () => {
    const [first, second] = await openTwo();
    const ran: string[] = [];
    const asSecond = (name: string) => second.alone(async () => void ran.push(name));
    expect(await first.alone(async () => void (await asSecond("beside")))).to.equal(true);
    expect([await asSecond("after"), ran]).to.deep.equal([true, ["after"]]);
  });
});

/** A blob with 40 bytes of metadata, the first of which depend on the content. */
function makeBlob(content: string): Bytes {
  return bytes(`SRVB\u0002\u0000\u0000\u0000(${content.padEnd(40, "m")}the rest`);
}
