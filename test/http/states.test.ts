/** docs/http-api.md, States: transitions, and what each state refuses. */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { passphrase, shareTestServer, startTestServer, type TestServer } from "../../tools/rig/server.js";
import {
  type ApiResponse,
  mustGet,
  mustInit,
  mustList,
  mustLock,
  mustPut,
  mustRefuse,
  mustStatus,
  mustSucceed,
  mustUnlock,
  type Send,
  send,
} from "../../tools/rig/test-client.js";
import { untilDerivationsWait } from "../support/scrape.js";

type State = "not initialized" | "locked" | "unlocked";

const requests = {
  init: { method: "POST", path: "/v1/init", body: { passphrase: "another" } },
  "init with force false": { method: "POST", path: "/v1/init", body: { passphrase: "another", force: false } },
  "init with force": { method: "POST", path: "/v1/init", body: { passphrase: "another", force: true } },
  unlock: { method: "POST", path: "/v1/unlock", body: { passphrase } },
  "unlock with a wrong passphrase": { method: "POST", path: "/v1/unlock", body: { passphrase: "wrong" } },
  lock: { method: "POST", path: "/v1/lock" },
  status: { path: "/v1/status", token: null },
  shutdown: { method: "POST", path: "/v1/shutdown" },
  put: { method: "PUT", path: "/v1/secrets/kept", body: { value: "new" } },
  get: { path: "/v1/secrets/kept" },
  list: { path: "/v1/secrets" },
  delete: { method: "DELETE", path: "/v1/secrets/kept" },
  batch: { method: "POST", path: "/v1/batch", body: { operations: [{ put: "kept", value: "new" }] } },
  "batch with a malformed body": { method: "POST", path: "/v1/batch", body: "{" },
  "put with a malformed path and body": { method: "PUT", path: "/v1/secrets/a//b", body: "{" },
  "get of a malformed path": { path: "/v1/secrets/%zz" },
  "get of a missing path": { path: "/v1/secrets/missing" },
  "list with a malformed query": { path: "/v1/secrets?limit=none" },
} satisfies Record<string, Send>;

type Verb = keyof typeof requests;

const rules: readonly (readonly [State, Verb, string, State | "stopped"])[] = [
  ["not initialized", "init", "200", "unlocked"],
  ["not initialized", "init with force", "200", "unlocked"],
  ["not initialized", "unlock", "400 BAD_REQUEST", "not initialized"],
  ["not initialized", "lock", "200", "not initialized"],
  ["not initialized", "status", "200", "not initialized"],
  ["not initialized", "put", "403 VAULT_LOCKED", "not initialized"],
  ["not initialized", "get", "403 VAULT_LOCKED", "not initialized"],
  ["not initialized", "list", "403 VAULT_LOCKED", "not initialized"],
  ["not initialized", "delete", "403 VAULT_LOCKED", "not initialized"],
  ["not initialized", "batch", "403 VAULT_LOCKED", "not initialized"],
  ["not initialized", "shutdown", "200", "stopped"],
  ["locked", "init", "409 ALREADY_EXISTS", "locked"],
  ["locked", "init with force false", "409 ALREADY_EXISTS", "locked"],
  ["locked", "init with force", "200", "unlocked"],
  ["locked", "unlock", "200", "unlocked"],
  ["locked", "unlock with a wrong passphrase", "401 UNAUTHORIZED", "locked"],
  ["locked", "lock", "200", "locked"],
  ["locked", "status", "200", "locked"],
  ["locked", "put", "403 VAULT_LOCKED", "locked"],
  ["locked", "get", "403 VAULT_LOCKED", "locked"],
  ["locked", "list", "403 VAULT_LOCKED", "locked"],
  ["locked", "delete", "403 VAULT_LOCKED", "locked"],
  ["locked", "batch", "403 VAULT_LOCKED", "locked"],
  ["locked", "batch with a malformed body", "403 VAULT_LOCKED", "locked"],
  ["locked", "put with a malformed path and body", "403 VAULT_LOCKED", "locked"],
  ["locked", "get of a malformed path", "403 VAULT_LOCKED", "locked"],
  ["locked", "get of a missing path", "403 VAULT_LOCKED", "locked"],
  ["locked", "list with a malformed query", "403 VAULT_LOCKED", "locked"],
  ["locked", "shutdown", "200", "stopped"],
  ["unlocked", "init", "409 ALREADY_EXISTS", "unlocked"],
  ["unlocked", "init with force false", "409 ALREADY_EXISTS", "unlocked"],
  ["unlocked", "init with force", "200", "unlocked"],
  ["unlocked", "unlock", "200", "unlocked"],
  ["unlocked", "unlock with a wrong passphrase", "401 UNAUTHORIZED", "unlocked"],
  ["unlocked", "lock", "200", "locked"],
  ["unlocked", "status", "200", "unlocked"],
  ["unlocked", "put", "200", "unlocked"],
  ["unlocked", "get", "200", "unlocked"],
  ["unlocked", "list", "200", "unlocked"],
  ["unlocked", "delete", "200", "unlocked"],
  ["unlocked", "batch", "200", "unlocked"],
  ["unlocked", "batch with a malformed body", "400 BAD_REQUEST", "unlocked"],
  ["unlocked", "get of a missing path", "404 NOT_FOUND", "unlocked"],
  ["unlocked", "shutdown", "200", "stopped"],
];

describe("states", () => {
  const states: readonly State[] = ["not initialized", "locked", "unlocked"];
  for (const state of states) {
    describe(`while ${state}`, () => {
      const shared = shareTestServer();
      for (const [, verb, want, next] of rules.filter(([of]) => of === state)) {
        it(`${verb} returns ${want} and leaves the vault ${next}`, async () => {
          const server = next === state && verb !== "init with force" ? shared() : await startTestServer();
          await bringTo(server, state);
          expect(outcome(await send(server, requests[verb]))).to.equal(want);
          if (next === "stopped") await server.stopped;
          else expect(await stateOf(server)).to.equal(next);
        });
      }
    });
  }
});

async function bringTo(server: TestServer, state: State): Promise<void> {
  const now = await stateOf(server);
  if (now === state && state !== "unlocked") return;
  if (now === "not initialized") await mustInit(server);
  await mustPut(server, "kept", "old");
  if (state === "locked") await mustLock(server);
}

async function stateOf(server: TestServer): Promise<State> {
  const { initialized, locked } = await mustStatus(server);
  if (initialized === false) return "not initialized";
  return locked === true ? "locked" : "unlocked";
}

function outcome({ status, json }: ApiResponse): string {
  return status === 200 ? "200" : `${status} ${String(json["code"])}`;
}

describe("lock", () => {
  it("keeps secretCount correct, also after a restart", async () => {
    const first = await startTestServer();
    await mustInit(first);
    for (const path of ["a", "a/b", "c/d/e"]) await mustPut(first, path, "v");
    await mustLock(first);
    expect((await mustStatus(first))["secretCount"]).to.equal(3);
    await first.stop();
    const second = await startTestServer({ home: first.home });
    expect(await mustStatus(second)).to.include({ initialized: true, locked: true, secretCount: 3 });
    await mustUnlock(second);
    expect((await mustGet(second, "a/b"))["value"]).to.equal("v");
  });

  it("lets nothing succeed after its 200, with 50 clients writing and reading", async () => {
    const server = await startTestServer();
    await mustInit(server);
    await mustPut(server, "read", "v");
    const late: string[] = [];
    let locked = false;
    const client = async (n: number) => {
      const put = { method: "PUT", path: `/v1/secrets/c${n}`, body: { value: "v" } };
      const request = n % 2 ? put : { path: "/v1/secrets/read" };
      for (let i = 0; i < 20; i++) {
        const { status, text } = await send(server, request);
        if (status !== 403 && (locked || status !== 200)) late.push(`${status} ${text}`);
      }
    };
    const clients = Array.from({ length: 50 }, (_, n) => client(n));
    await mustLock(server);
    locked = true;
    await Promise.all(clients);
    expect(late).to.deep.equal([]);
  });

  it("refuses queued unlocks, and none of them undoes it", async () => {
    const server = await startTestServer({ scryptLogN: 16 });
    await mustInit(server);
    const unlocks = Array.from({ length: 6 }, () => send(server, requests.unlock));
    await untilDerivationsWait(server);
    await mustLock(server);
    const statuses = (await Promise.all(unlocks)).map(outcome);
    expect(statuses).to.include("403 VAULT_LOCKED");
    expect(await stateOf(server)).to.equal("locked");
  });
});

describe("forced re-init", () => {
  let message = "";
  const initializeTwice = async (fresh: TestServer) => {
    await mustInit(fresh);
    await mustPut(fresh, "old/secret", "old value");
    message = String((await mustInit(fresh, { passphrase: "second", force: true }))["message"]);
  };
  const server = shareTestServer({}, initializeTwice);

  it("creates a new empty vault", async () => {
    expect((await mustStatus(server()))["secretCount"]).to.equal(0);
    expect(await mustList(server())).to.deep.equal([]);
    mustRefuse(await send(server(), { path: "/v1/secrets/old/secret" }), 404, "NOT_FOUND");
  });

  it("has a new id, salt and key", () => {
    const [before, after] = ["gen-1", "gen-2"].map((name) => {
      const text = readFileSync(join(server().home, "vault", name, "header.json"), "utf8");
      const { vaultId, slots } = JSON.parse(text) as { vaultId: string; slots: [{ wrappedKey: string; kdf: object }] };
      return { vaultId, ...slots[0] };
    });
    expect(after?.vaultId).not.to.equal(before?.vaultId);
    expect(after?.wrappedKey).to.be.a("string").and.not.to.equal(before?.wrappedKey);
    expect(after?.kdf).not.to.deep.equal(before?.kdf);
  });

  it("keeps the old vault whole in a directory that the message names", () => {
    const kept = join(server().home, "vault", "gen-1");
    expect(message).to.contain(kept);
    expect(existsSync(join(kept, "secrets", "old", "secret.sealed"))).to.equal(true);
  });

  it("leaves the old vault under its old passphrase, ready to be restored", async () => {
    const { home, ...own } = await startTestServer();
    await initializeTwice({ home, ...own });
    await own.stop();
    writeFileSync(join(home, "vault", "current"), "gen-1\n");
    const restored = await startTestServer({ home });
    mustRefuse(await send(restored, { ...requests.unlock, body: { passphrase: "second" } }), 401, "UNAUTHORIZED");
    await mustUnlock(restored);
    expect((await mustGet(restored, "old/secret"))["value"]).to.equal("old value");
  });
});

describe("concurrent lifecycle", () => {
  it("exactly one of two concurrent inits creates the vault, and its passphrase opens it", async () => {
    const server = await startTestServer();
    const bodies = ["one", "two"].map((text) => ({ passphrase: text }));
    const answers = await Promise.all(bodies.map((body) => send(server, { ...requests.init, body })));
    expect(answers.map(outcome).sort()).to.deep.equal(["200", "409 ALREADY_EXISTS"]);
    const winner = bodies[answers.findIndex(({ status }) => status === 200)];
    await mustLock(server);
    mustSucceed(await send(server, { ...requests.unlock, ...(winner && { body: winner }) }));
  });

  it("unlocks that run during a shutdown get 503 UNAVAILABLE", async () => {
    const server = await startTestServer({ scryptLogN: 17 });
    await mustInit(server);
    const unlocks = Array.from({ length: 3 }, () => send(server, requests.unlock));
    await untilDerivationsWait(server);
    mustSucceed(await send(server, requests.shutdown));
    for (const answer of (await Promise.all(unlocks)).slice(1)) mustRefuse(answer, 503, "UNAVAILABLE");
  });

  it("a forced init among unlocks never leaves the old key in use", async () => {
    const server = await startTestServer();
    await mustInit(server);
    const unlocks = Array.from({ length: 4 }, () => send(server, requests.unlock));
    mustSucceed(await send(server, requests["init with force"]));
    await Promise.all(unlocks);
    await mustPut(server, "after", "value");
    await mustLock(server);
    await mustUnlock(server, "another");
    expect((await mustGet(server, "after"))["value"]).to.equal("value");
  });
});
