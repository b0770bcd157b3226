/** docs/audit.md: what a server records, who may read it, and that its checkpoints are the vault's. */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { judgeCheckpoints, verifyLog } from "../../src/audit/verify.js";
import { passphrase, shareTestServer, startTestServer, type TestServer } from "../../tools/rig/server.js";
import {
  type Json,
  mustCreateToken,
  mustGet,
  mustInit,
  mustList,
  mustLock,
  mustPut,
  mustRefuse,
  mustSucceed,
  mustUnlock,
  type Send,
  send,
} from "../../tools/rig/test-client.js";
import { readLog } from "../audit/sample-log.js";
import { failingFiles } from "../support/failing-files.js";
import { FakeClock } from "../support/manual-clock.js";

type Page = { readonly records: readonly Json[]; readonly head: { readonly log: string; readonly seq: number } };

async function readAudit(server: TestServer, query = "?limit=1000"): Promise<Page> {
  return mustSucceed(await send(server, { path: `/v1/audit${query}` })) as unknown as Page;
}

/** Returns the records that work has made, without what changes from run to run. */
async function recordsDuring(server: TestServer, work: () => Promise<unknown>): Promise<object[]> {
  const { seq } = (await readAudit(server, "?limit=1")).head;
  await work();
  const { records } = await readAudit(server, `?after=${seq}&limit=1000`);
  return records.map(({ seq: _, time: __, requestId, etag, ...record }) => ({
    ...record,
    ...(requestId !== undefined && { requestId: "id" }),
    ...(etag !== undefined && { etag: "tag" }),
  }));
}

const logDirectory = ({ home }: TestServer) => join(home, "audit");

/** The log must be whole, with checkpoints of the vault's key; returns the last record that one covers. */
async function mustVerify(server: TestServer): Promise<number> {
  await readAudit(server);
  const verified = await verifyLog(logDirectory(server));
  const { problems, covered } = await judgeCheckpoints(verified, async (checkpoints) => {
    const body = { checkpoints };
    return mustSucceed(await send(server, { method: "POST", path: "/v1/audit/verify", body }))["verdicts"] as "valid"[];
  });
  expect([...verified.problems, ...problems]).to.deep.equal([]);
  return covered;
}

const by = { token: "root", address: "127.0.0.1" };
const get = (path: string): Send => ({ path: `/v1/secrets/${path}` });

describe("the audit log of a server", () => {
  const server = shareTestServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "app/a", "v");
  });

  it("records id, kind and label of a key that is created or deleted", async () => {
    let id: unknown;
    const body = { passphrase, label: 'my "laptop"' };
    const records = await recordsDuring(server(), async () => {
      ({ id } = mustSucceed(await send(server(), { method: "POST", path: "/v1/keys", body })));
      mustSucceed(await send(server(), { method: "DELETE", path: `/v1/keys/${String(id)}` }));
      await send(server(), { method: "DELETE", path: "/v1/keys/passphrase" });
    });
    const key = { name: id, kind: "key", label: body.label };
    expect(records).to.deep.equal([
      { event: "key-create", ...by, ...key, status: 200 },
      { event: "key-delete", ...by, ...key, status: 200 },
      { event: "key-delete", ...by, status: 400, code: "BAD_REQUEST" },
    ]);
  });

  it("writes a checkpoint before a lock, after an unlock, and after a rotation of the master key", async () => {
    const records = await recordsDuring(server(), async () => {
      await mustLock(server());
      await mustUnlock(server());
      mustSucceed(await send(server(), { method: "POST", path: "/v1/rotate", body: { passphrase, keys: [] } }));
    });
    const brief = records.map((record) => {
      const { event, reason } = record as Json;
      return reason === undefined ? event : `${String(event)} ${String(reason)}`;
    });
    expect(brief).to.deep.equal([
      "locked request",
      "checkpoint lock",
      "lock",
      "checkpoint unlock",
      "unlock",
      "rotate",
      "checkpoint key",
    ]);
    expect(await mustVerify(server())).to.equal((await readAudit(server())).head.seq);
  });

  it("the audit log verifies after a rotation whose old key is gone, and after a forced init", async () => {
    for (;;) {
      const status = mustSucceed(await send(server(), { path: "/v1/status" }));
      if (status["rotation"] === undefined) break;
    }
    await mustVerify(server());
    await mustInit(server(), { passphrase, force: true });
    expect(await mustVerify(server())).to.be.above(0);
  });

  it("tokens with the scope audit read the log in pages", async () => {
    const { token } = await mustCreateToken(server(), { name: "auditor", can: ["audit"], paths: ["app/"] });
    const all = await readAudit(server());
    const seqs: unknown[] = [];
    for (let after = 0; after < all.head.seq; ) {
      const answer = await send(server(), { path: `/v1/audit?after=${after}&limit=7`, token });
      const { records } = mustSucceed(answer) as unknown as Page;
      seqs.push(...records.map(({ seq }) => seq));
      after = Number(records.at(-1)?.["seq"] ?? all.head.seq);
    }
    expect(seqs).to.deep.equal(Array.from({ length: all.head.seq }, (_, i) => i + 1));
  });

  for (const query of ["after=-1", "after=x", "limit=0", "limit=1001", "limit=1&limit=2"]) {
    it(`GET /v1/audit refuses ?${query}`, async () => {
      mustRefuse(await send(server(), { path: `/v1/audit?${query}` }), 400, "BAD_REQUEST");
    });
  }

  for (const filler of [
    "[".repeat(20_000) + "]".repeat(20_000),
    `[0${",0".repeat(20_000)}]`,
    `[{}${",{}".repeat(20_000)}]`,
  ])
    it(`refuses checkpoints next to ${filler.slice(0, 8)}…, which would take long to parse`, async () => {
      const body = `{"other":${filler},"checkpoints":[]}`;
      mustRefuse(await send(server(), { method: "POST", path: "/v1/audit/verify", body }), 400, "BAD_REQUEST");
    });

  for (const body of ["", "{}", '{"checkpoints":{}}', '{"checkpoints":[{}]}', '{"checkpoints":[1]}']) {
    it(`refuses checkpoints in ${body || "no body"}`, async () => {
      mustRefuse(await send(server(), { method: "POST", path: "/v1/audit/verify", body }), 400, "BAD_REQUEST");
    });
  }

  it("no record of the audit log contains a value, a passphrase, a token or a digest", async () => {
    const { token } = await mustCreateToken(server(), { name: "seen" });
    await mustPut(server(), "app/a", "a value that must not be seen");
    await send(server(), { ...get("app/a"), token });
    await readAudit(server());
    const text = [...readLog(logDirectory(server())).values()].join("");
    for (const secret of ["a value that", passphrase, server().token, token, token.slice(4, 40)])
      expect(text).to.not.include(secret);
    expect(text).to.include('"token":"seen"');
  });
});

describe("the audit log", () => {
  it("records start and stop, and continues the log after a restart", async () => {
    const server = await startTestServer();
    await readAudit(server);
    await mustInit(server);
    await readAudit(server);
    await server.stop();
    const again = await startTestServer({ home: server.home });
    await readAudit(again);
    await mustUnlock(again);
    const { records } = await readAudit(again);
    expect(records.map(({ event }) => event)).to.deep.equal([
      ...["start", "checkpoint", "init", "stop", "locked", "checkpoint"],
      ...["start", "unlock", "checkpoint"], // the log before is checked first
    ]);
    await mustVerify(again);
  });

  it("records lockouts, and nothing else of clients without a token", async () => {
    const server = await startTestServer();
    for (let n = 0; n < 12; n++) await send(server, { path: "/v1/secrets", token: "wrong", localAddress: "127.0.0.9" });
    const lines = (await readAudit(server)).records.map(({ event, address, credential }) => [
      event,
      address,
      credential,
    ]);
    expect(lines).to.deep.equal([
      ["start", undefined, undefined],
      ["lockout", "127.0.0.9", "token"],
    ]);
  });

  it("records the number of further lockouts once a minute", async () => {
    const clock = new FakeClock();
    const server = await startTestServer({ clock });
    for (let client = 0; client < 5; client++)
      for (let n = 0; n < 10; n++)
        await send(server, { path: "/v1/secrets", token: "wrong", localAddress: `127.0.0.${20 + client}` });
    const lockouts = async () => {
      const { records } = await readAudit(server);
      return records.filter(({ event }) => event === "lockout").map(({ address, count }) => address ?? count);
    };
    expect(await lockouts()).to.deep.equal(["127.0.0.20"]);
    clock.advance(60_000);
    expect(await lockouts()).to.deep.equal(["127.0.0.20", 4]);
    clock.advance(60_000);
    expect(await lockouts()).to.deep.equal(["127.0.0.20", 4]);
  });

  it("leaves out reads and lists with --audit changes", async () => {
    const server = await startTestServer({ audit: "changes" });
    await readAudit(server);
    await mustInit(server);
    await mustPut(server, "a", "v");
    await mustGet(server, "a");
    await mustList(server);
    const operations = [{ get: "a" }, { delete: "a" }];
    await send(server, { method: "POST", path: "/v1/batch", body: { operations: operations.slice(0, 1) } });
    await send(server, { method: "POST", path: "/v1/batch", body: { operations } });
    const events = (await readAudit(server)).records.map(({ event }) => event);
    expect(events).to.deep.equal(["start", "checkpoint", "init", "put", "delete"]);
  });

  it("writes no audit log with --audit off, and GET /v1/audit returns 404", async () => {
    const server = await startTestServer({ audit: "off" });
    await mustInit(server);
    mustRefuse(await send(server, { path: "/v1/audit" }), 404, "NOT_FOUND");
    expect(existsSync(logDirectory(server))).to.equal(false);
  });

  it("only the owner can read the audit log and its directory", async () => {
    const server = await startTestServer();
    await readAudit(server);
    const modes = [logDirectory(server), join(logDirectory(server), "audit-000001.jsonl")].map(
      (path) => statSync(path).mode,
    );
    expect(modes.map((mode) => mode & 0o777)).to.deep.equal([0o700, 0o600]);
  });
});

describe("the audit log on a full disk", () => {
  /** A server of which only the audit log fails: the vault's own files are written before. */
  async function startOnFullDisk(auditOnFailure: "allow" | "deny") {
    const clock = new FakeClock();
    const { files, fail, repair } = failingFiles();
    const server = await startTestServer({ clock, files, audit: "all", auditOnFailure });
    await mustInit(server);
    await mustPut(server, "a", "v");
    await readAudit(server);
    fail("writeFile", "ENOSPC");
    return { server, clock, repair };
  }

  it("reads continue while the disk of the audit log is full, and are recorded when there is room again", async () => {
    const { server, clock, repair } = await startOnFullDisk("allow");
    for (let second = 0; second < 60; second++) {
      await mustGet(server, "a");
      clock.advance(1_000);
    }
    repair();
    expect((await readAudit(server)).records.filter(({ event }) => event === "get")).to.have.lengthOf(60);
    await mustVerify(server);
  });

  it("--audit-on-failure deny refuses operations on secrets while the disk of the audit log is full", async () => {
    const { server, clock, repair } = await startOnFullDisk("deny");
    await mustGet(server, "a");
    clock.advance(50);
    await readAudit(server);
    mustRefuse(await send(server, get("a")), 503, "UNAVAILABLE");
    mustSucceed(await send(server, { path: "/v1/status" }));
    repair();
    await readAudit(server);
    await mustGet(server, "a");
  });
});
