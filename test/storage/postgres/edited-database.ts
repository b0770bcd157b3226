/** A server on a database whose rows a test edits by hand and puts back, and what must hold with any rows. */
import { expect } from "chai";
import { Client } from "pg";
import { databaseEngine } from "../../../src/engines/postgres.js";
import { homeAt } from "../../../src/files/home.js";
import { examineStore } from "../../../src/maintenance/doctor/check-store.js";
import type { Finding } from "../../../src/maintenance/doctor/finding.js";
import { Keys } from "../../../src/maintenance/offline-keys.js";
import { later, temporaryDirectory } from "../../../tools/rig/clean-up.js";
import { databaseUrl, type TestPostgres } from "../../../tools/rig/postgres.js";
import { passphrase, realScryptCost, type TestOptions } from "../../../tools/rig/server.js";
import { type Json, mustCreateToken, mustPut, mustSucceed, mustUnlock, send } from "../../../tools/rig/test-client.js";
import { startVaultServer, type VaultServer, vault } from "../../../tools/rig/vault-client.js";
import { bytes } from "../../support/bytes.js";

export const paths = ["a", "b/c", "b/d", "b/e", "kv/doc"] as const;
const deleted = ["b/c", "gone/1"];
const expectedValues = (path: string) => [1, 2, 3].map((version) => `${path} ${version}`);

const tables = ["schema_version", "vault", "current", "secret", "secret_count", "document", "blob"];

const refusals = ["INTEGRITY", "NOT_FOUND", "UNAVAILABLE", "VAULT_LOCKED"];

export type EditedDatabase = {
  readonly server: VaultServer;
  readonly url: string;
  readonly sql: (statement: string) => Promise<unknown>;
  /** Runs work on edited rows, then puts all rows back. */
  readonly edited: (edits: string, work: () => Promise<unknown>) => Promise<void>;
  /**
   * Asks in every way: each secret has one of its own values or an error with a code, and its last one if its row and the
   * vault's are as they were.
   */
  readonly mustServeOwnValues: () => Promise<void>;
  /** Returns the findings of doctor, with the passphrase. */
  readonly findings: () => Promise<readonly Finding[]>;
};

/** `loosened`: statements that take constraints away. `more`: stores more. */
export async function startEditedDatabase(
  postgres: TestPostgres,
  { loosened = "", options = realScryptCost }: { readonly loosened?: string; readonly options?: TestOptions } = {},
  more: (server: VaultServer) => Promise<unknown> = async () => {},
): Promise<EditedDatabase> {
  const url = databaseUrl(postgres.port, await postgres.database());
  const server = await startVaultServer({ ...options, store: url });
  await fill(server);
  await more(server);
  const database = new Client({ connectionString: url });
  await database.connect();
  const copies = tables.map((table) => `CREATE TABLE saved.${table} AS TABLE strongroom.${table}`);
  await database.query(`CREATE SCHEMA saved; ${copies.join("; ")}; ${loosened}`);
  const store = await databaseEngine.open(url, null, { creates: false });
  const keys = new Keys(bytes(passphrase));
  later(async () => {
    await keys.stop();
    await store.close();
    await database.end();
  });

  const sql = async (statement: string) => (await database.query(statement)).rows;

  async function edited(edits: string, work: () => Promise<unknown>): Promise<void> {
    await sql(edits);
    try {
      await work();
    } finally {
      const emptied = tables.toReversed().map((table) => `DELETE FROM strongroom.${table}`);
      const filled = tables.map((table) => `INSERT INTO strongroom.${table} TABLE saved.${table}`);
      await sql(`BEGIN; ${[...emptied, ...filled].join(";")}; COMMIT`);
      const get = () => send(server, { path: "/v1/secrets/a" });
      await get(); // another epoch locks the vault
      if ((await get()).status !== 200) await mustUnlock(server);
    }
  }

  async function mustServeOwnValues(): Promise<void> {
    const rows = await sql(`SELECT s.path FROM saved.secret s JOIN strongroom.secret USING (vault, path, blob)
      WHERE ARRAY(SELECT c::text FROM saved.current c) = ARRAY(SELECT c::text FROM strongroom.current c)
        AND (SELECT count(*) FROM strongroom.secret d WHERE d.path = s.path) = 1`);
    const whole = rows.map(({ path }) => String(path));
    await mustServeBatch(server, whole);
    await mustList(server, whole);
    expect((await send(server, { path: "/v1/status", token: null })).status).to.equal(200);
    for (const path of ["/v1/trash", "/v1/transit/keys"]) await ask(server, path);
    for (const path of paths.filter((each) => !whole.includes(each))) await mustServeToVaultClients(server, path);
  }

  async function findings(): Promise<readonly Finding[]> {
    const found: Finding[] = [];
    const inspection = {
      ...{ home: homeAt(temporaryDirectory()), owner: null, keys, now: Date.now(), served: true },
      ...{ report: (finding: Finding) => found.push(finding), expires: () => {} },
      progress: { expect: () => {}, step: () => {} },
    };
    await examineStore(inspection, store);
    return found;
  }

  return { server, url, sql, edited, mustServeOwnValues, findings };
}

async function fill(server: VaultServer): Promise<void> {
  for (const path of deleted) {
    await mustPut(server, path, "in the trash");
    mustSucceed(await send(server, { method: "POST", path: `/v1/trash/${path}` }));
  }
  for (const path of paths) for (const value of expectedValues(path)) await mustPut(server, path, value);
  for (const key of ["b/d", "k"])
    mustSucceed(await send(server, { method: "POST", path: `/v1/transit/keys/${key}`, body: {} }));
  await mustCreateToken(server, { name: "reader", can: ["get"] });
}

/** Returns the body of a 200; null when the request is refused as it may be. */
async function ask(server: VaultServer, path: string, body?: object): Promise<Json | null> {
  const { status, json, text } = await send(server, { path, ...(body && { method: "POST", body }) });
  if (status === 200) return json;
  expect(refusals, `${path}: ${text}`).to.include(json["code"]);
  return null;
}

async function mustServeBatch(server: VaultServer, whole: readonly string[]): Promise<void> {
  const batch = await ask(server, "/v1/batch", { operations: paths.map((path) => ({ get: path })) });
  const results = (batch?.["results"] ?? []) as readonly Json[];
  for (const [i, path] of paths.entries()) {
    const { value, code } = results[i] ?? {};
    if (whole.includes(path))
      expect(value ?? (await ask(server, `/v1/secrets/${path}`))?.["value"], `${path} is lost`).to.equal(`${path} 3`);
    else expect([...expectedValues(path), ...refusals, undefined]).to.include(value ?? code);
  }
}

async function mustList(server: VaultServer, whole: readonly string[]): Promise<void> {
  const list = await ask(server, "/v1/secrets");
  const listed = ((list?.["entries"] ?? []) as readonly Json[]).map(({ path }) => path);
  expect(listed).to.include.members([...whole]);
  expect(paths).to.include.members(listed);
}

async function mustServeToVaultClients(server: VaultServer, path: string): Promise<void> {
  await ask(server, `/v1/versions/${path}`);
  const { status, json } = await vault(server, "GET", `secret/data/${path}`);
  if (status === 200) expect(expectedValues(path)).to.include(json.data.data.value);
  else expect([404, 500, 503]).to.include(status);
}
