/**
 * Every operation, with the root token and a client token, on a database with damaged rows: documented responses, other
 * secrets stay readable, and all works again once the rows are repaired.
 */
import { expect } from "chai";
import { scopes } from "../../src/contract/names.js";
import { shared } from "../../tools/rig/clean-up.js";
import { needsPostgres, startPostgres } from "../../tools/rig/postgres.js";
import { testScryptLogN } from "../../tools/rig/server.js";
import { mustCreateToken, mustGet, mustSucceed, send } from "../../tools/rig/test-client.js";
import { paths, startEditedDatabase } from "../storage/postgres/edited-database.js";
import { contractRequests } from "../support/request-rig.js";

/** All requests name the damaged secret or key; only a new key has a name of its own. */
const requests = contractRequests((subject) => (subject === "app/new" ? "new" : "a"));

const noise = "decode(repeat('a7', 300), 'hex')";
const header = (bytes: string) => `UPDATE strongroom.vault SET header = ${bytes}`;
const tokens = (bytes: string) => `UPDATE strongroom.document SET tag = 'x', bytes = ${bytes} WHERE name = 'tokens'`;
const blobs = (bytes: string) =>
  `UPDATE strongroom.blob SET blob = ${bytes}; UPDATE strongroom.secret SET blob = ${bytes} WHERE path = 'a'`;

type Damage = readonly [what: string, edit: string];

const damages: readonly Damage[] = [
  ["a header of noise", header(noise)],
  ["a secret, deleted ones and keys of noise", blobs(noise)],
];

const furtherDamages: readonly Damage[] = [
  ["client tokens of noise", tokens(noise)],
  ["an empty header", header("''")],
  ["a header cut short", header("substring(header FROM 1 FOR 100)")],
  ["empty client tokens", tokens("''")],
  ["no client tokens", "DELETE FROM strongroom.document"],
  ["an empty secret, deleted ones and keys", blobs("''")],
  ["no deleted secrets and keys", "DELETE FROM strongroom.blob"],
  ["no counts", "DELETE FROM strongroom.secret_count"],
];

/** They change header and state, in this order, after all others. */
const last = ["createKey", "changePassphrase", "rotate", "lock", "unlock", "init"];

const others = Object.keys(requests).filter((name) => !last.includes(name) && name !== "shutdown");

describe("every operation on damaged rows", function () {
  this.timeout(60_000);
  before(function () {
    needsPostgres(this);
  });
  const postgres = shared(startPostgres);
  let token = "";
  const database = shared(() => {
    const options = { brokerPort: 0, reviewPage: true, scryptLogN: testScryptLogN };
    return startEditedDatabase(postgres(), { options }, async (server) => {
      mustSucceed(await send(server, { method: "POST", path: "/v1/transit/keys/a" }));
      token = (await mustCreateToken(server, { name: "all", can: scopes })).token;
    });
  });

  /** The judge of the contract fails the file for a status or code that is not documented. */
  async function mustRespond(operation: string, sent: string): Promise<void> {
    const request = requests[operation] ?? expect.fail(operation);
    const { json } = await send(database().server, { token: sent, ...request });
    expect(json["code"], `${operation}: ${String(json["error"])}`).not.to.equal("INTERNAL");
  }

  async function mustRespondToAll(): Promise<void> {
    for (const operation of others)
      for (const sent of [token, database().server.token]) await mustRespond(operation, sent);
    await mustServe(paths.slice(1));
    for (const operation of last) await mustRespond(operation, database().server.token);
  }

  async function mustServe(expected: readonly string[]): Promise<void> {
    for (const path of expected) expect((await mustGet(database().server, path))["value"]).to.equal(`${path} 3`);
  }

  for (const [what, edit] of [...damages, ...(process.env["STRONGROOM_DAMAGED_ROWS"] ? furtherDamages : [])]) {
    it(`responds as documented to ${what}, and serves all other secrets`, async () => {
      await database().edited(edit, mustRespondToAll); // which unlocks the vault again
      await mustServe(paths);
    });
  }
});
