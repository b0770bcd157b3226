/** Binary values, byte for byte, through everything that stores, moves or copies secrets. The long form takes 1,000 of them. */
import { randomBytes, randomInt } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import type { BatchOperation, StrongroomClient } from "../../src/client/client.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { databaseUrl, postgresPrograms, startPostgres } from "../../tools/rig/postgres.js";
import {
  passphrase,
  realScryptCost,
  shareTestServer,
  startTestServer,
  type TestServer,
} from "../../tools/rig/server.js";
import { mustInit, mustStatus, mustUnlock } from "../../tools/rig/test-client.js";
import { type VaultServer, vault } from "../../tools/rig/vault-client.js";
import { mustDo, strongroom } from "../cli/run-command.js";
import { run } from "../support/command-here.js";
import { makeClient } from "../support/library.js";

const count = Number(process.env["STRONGROOM_BINARY_VALUES"] ?? 10);

/** Each costs two processes. */
const byCommand = Math.ceil(count / 20);

/** Values that a program would change which takes bytes for text, or for a line. */
const difficult = [
  ...["", "\0", "\n", "\r\n", "text\n", "\ufeffbom", "\u0000\u0001", '"\\'].map((text) => Buffer.from(text)),
  ...["ff", "fffe", "c080", "eda080", "e282", "f0288cbc", "0d0a1a", "80".repeat(300)].map((hex) =>
    Buffer.from(hex, "hex"),
  ),
];

/** Most are short, some have up to 100 kB. */
function randomValue(n: number): Buffer {
  return difficult[n] ?? randomBytes(n % 50 === 0 ? randomInt(100_000) : randomInt(1_000));
}

type Values = ReadonlyMap<string, Buffer>;

function randomValues(prefix = "binary"): Values {
  return new Map(Array.from({ length: count }, (_, n) => [`${prefix}/${n % 7}/${n}`, randomValue(n)]));
}

const operationsAtOnce = 100;

async function batch(client: StrongroomClient, operations: readonly BatchOperation[]): Promise<void> {
  for (let at = 0; at < operations.length; at += operationsAtOnce) {
    await client.batch(operations.slice(at, at + operationsAtOnce));
  }
}

function putAll(client: StrongroomClient, values: Values): Promise<void> {
  const puts = [...values].map(([path, value]) => ({
    put: path,
    value: value.toString("base64"),
    encoding: "base64" as const,
  }));
  return batch(client, puts);
}

async function mustHold(client: StrongroomClient, values: Values): Promise<void> {
  const paths = [...values.keys()];
  for (let at = 0; at < paths.length; at += operationsAtOnce) {
    const some = paths.slice(at, at + operationsAtOnce);
    const secrets = await client.getMany(some);
    for (const [i, path] of some.entries()) mustBe(secrets[i]?.revealBytes(), values.get(path), path);
  }
}

function mustBe(found: Uint8Array | undefined, expected: Buffer | undefined, what: string): void {
  expect(found && Buffer.from(found).toString("hex"), what).to.equal(expected?.toString("hex"));
}

/** The same values at other paths. */
function under(prefix: string, values: Values): Values {
  return new Map([...values].map(([path, value]) => [`${prefix}/${path}`, value]));
}

describe(`${count} binary values`, function () {
  this.timeout(0);
  const server = shareTestServer({ vaultPort: 0, idleTimeoutMs: 0 }, mustInit);
  const stored = async (prefix: string) => {
    const client = makeClient(server());
    const values = randomValues(prefix);
    await putAll(client, values);
    return { client, values };
  };

  it("binary values return as they were put: one by one, in batches, through files and pipes of commands", async () => {
    const { client, values } = await stored("put");
    await mustHold(client, values);
    for (const [path, value] of values) {
      await client.putBytes(`one/${path}`, value);
      mustBe((await client.get(`one/${path}`)).revealBytes(), value, path);
    }
    const directory = temporaryDirectory();
    for (const [path, value] of [...values].slice(-byCommand)) {
      const [file, copy] = [join(directory, "in.bin"), join(directory, "out.bin")];
      writeFileSync(file, value);
      mustDo(await strongroom(server(), ["put", `file/${path}`, "--from-file", file, "-q"]));
      mustDo(await strongroom(server(), ["get", `file/${path}`, "-o", copy, "--overwrite", "-q"]));
      mustBe(readFileSync(copy), value, path);
      mustBe(mustDo(await strongroom(server(), ["get", `file/${path}`])).bytes, value, path);
    }
  });

  it("binary values return from their history, by number and by undo", async () => {
    const { client, values } = await stored("history");
    await putAll(client, new Map([...values.keys()].map((path) => [path, randomBytes(100)])));
    for (const [path, value] of values) {
      mustBe((await client.version(path, 1)).revealBytes(), value, path);
      await client.undo(path, 1);
    }
    await mustHold(client, values);
  });

  it("binary values survive a move, a copy, the trash and new metadata", async () => {
    const { client, values } = await stored("moved");
    const moved = under("to", values);
    await batch(
      client,
      [...values.keys()].map((path) => ({ move: path, to: `to/${path}` })),
    );
    await batch(
      client,
      [...moved.keys()].map((path) => ({ copy: path, to: `copy/${path}` })),
    );
    await batch(
      client,
      [...moved.keys()].map((path) => ({ trash: path })),
    );
    for (const path of moved.keys()) await client.untrash(path);
    for (const path of moved.keys()) await client.changeMetadata(path, { description: "binary" });
    await mustHold(client, moved);
    await mustHold(client, under("copy", moved));
  });

  it("binary values survive a rotation of the master key, with their history", async () => {
    const { client, values } = await stored("rotated");
    await putAll(client, new Map([...values.keys()].map((path) => [path, randomBytes(100)])));
    await client.rotate(passphrase);
    while ((await mustStatus(server()))["rotation"] !== undefined) await new Promise((next) => setTimeout(next, 50));
    for (const [path, value] of values) mustBe((await client.version(path, 1)).revealBytes(), value, path);
  });

  it("binary values are read and written by clients of Vault", async () => {
    const { client, values } = await stored("vault");
    const port: VaultServer = { ...server(), vaultPort: Number((await mustStatus(server()))["vaultPort"]) };
    for (const [path, value] of values) {
      const data = { value: value.toString("base64"), encoding: "base64" };
      const { json } = await vault(port, "GET", `secret/data/${path}`);
      expect(json.data.data, path).to.deep.equal(data);
      const written = await vault(port, "POST", `secret/data/kv/${path}`, { body: { data } });
      expect(written.status, path).to.equal(200);
    }
    await mustHold(client, under("kv", values));
  });

  it("binary values are exported as JSON and imported into another vault", async () => {
    const { values } = await stored("exported");
    const file = join(temporaryDirectory(), "export.json");
    const exporting = ["export", "--format", "json", "--plaintext", "--prefix", "exported", "-o", file, "-q"];
    mustDo(await strongroom(server(), exporting));
    const other = await startTestServer();
    await mustInit(other);
    mustDo(await strongroom(other, ["import", "--format", "json", file, "-q"]));
    await mustHold(makeClient(other), values);
  });

  it("binary values return from a backup restored into another home", async () => {
    const saved = await startTestServer(realScryptCost);
    await mustInit(saved);
    const values = randomValues();
    await putAll(makeClient(saved), values);
    const file = join(temporaryDirectory(), "backup.tar");
    const home = join(temporaryDirectory(), "restored");
    mustDo(await strongroom(saved, ["backup", file, "-q"]));
    mustDo(await strongroom({ home }, ["restore", file, "-q"]));
    await mustHoldIn(await startTestServer({ home }), values);
  });

  it("binary values survive the way into PostgreSQL, changes there, and the way back", async function () {
    needs(this, postgresPrograms !== null, "PostgreSQL");
    const postgres = await startPostgres();
    const store = databaseUrl(postgres.port, await postgres.database());
    const source = await startTestServer(realScryptCost);
    await mustInit(source);
    const values = randomValues();
    await putAll(makeClient(source), values);
    await source.stop();
    await migrate(source.home, store);
    const served = await startTestServer({ home: source.home, store });
    await mustUnlock(served);
    await mustHold(makeClient(served), values);
    const changed = randomValues();
    await putAll(makeClient(served), changed);
    await mustHold(makeClient(served), changed);
    await served.stop();
    const home = join(temporaryDirectory(), "back");
    await migrate(store, home);
    const back = await startTestServer({ home });
    await mustHoldIn(back, changed);
    for (const [path, value] of values) mustBe((await makeClient(back).version(path, 1)).revealBytes(), value, path);
  });
});

async function mustHoldIn(server: TestServer, values: Values): Promise<void> {
  await mustUnlock(server);
  await mustHold(makeClient(server), values);
}

async function migrate(from: string, to: string): Promise<void> {
  const { code, stderr } = await run(["migrate", "--from", from, "--to", to, "-q"]);
  expect([code, stderr]).to.deep.equal([0, ""]);
}
