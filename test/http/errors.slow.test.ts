/** docs/reference/http-api.md, Errors: what the log has of them, unknown routes, crashes, damage, and storage that fails. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { passphrase, shareTestServer, startTestServer, type TestServer, uncached } from "../../tools/rig/server.js";
import {
  connectRaw,
  mustGet,
  mustInit,
  mustList,
  mustLock,
  mustPut,
  mustRefuse,
  mustStatus,
  mustSucceed,
  mustUnlock,
  parseRaw,
  send,
} from "../../tools/rig/test-client.js";
import { keyWorkerAsked } from "../support/asked-worker.js";
import { crashKeyWorkers } from "../support/crash-key-worker.js";
import { failingFiles } from "../support/failing-files.js";
import { FakeClock } from "../support/manual-clock.js";

const unlock = { method: "POST", path: "/v1/unlock", body: { passphrase } };

async function unlockedServer(options = {}): Promise<TestServer> {
  const server = await startTestServer(options);
  await mustInit(server);
  return server;
}

function secretFile(server: TestServer, name: string): string {
  return join(server.home, "vault", "gen-1", "secrets", `${name}.sealed`);
}

describe("errors", () => {
  it("an INTERNAL error has a request id that the log has too, with stack frames", async () => {
    const server = await unlockedServer({ scryptLogN: 15 });
    const deriving = keyWorkerAsked("unlock");
    const answer = send(server, unlock);
    await deriving;
    await crashKeyWorkers();
    const { json } = await answer;
    const line = server
      .logged()
      .split("\n")
      .find((text) => text.includes(String(json["requestId"])));
    expect(JSON.parse(line ?? "").error.cause.at).to.be.an("array").that.is.not.empty;
  });

  it("an INTEGRITY error has a request id that the log has too", async () => {
    const server = await unlockedServer(uncached);
    await mustPut(server, "a", "v");
    await writeFile(secretFile(server, "a"), "not a blob");
    const { json } = await send(server, { path: "/v1/secrets/a" });
    expect(json["requestId"]).to.match(/^[0-9a-f-]{36}$/);
    expect(server.logged()).to.contain(String(json["requestId"]));
  });
});

describe("a crash of the key worker", () => {
  it("a crash of the key worker leaves the vault locked and the server up, and the next unlock works", async () => {
    const server = await unlockedServer();
    await mustPut(server, "a", "v");
    await crashKeyWorkers();
    expect((await mustStatus(server))["locked"]).to.equal(true);
    mustRefuse(await send(server, { path: "/v1/secrets/a" }), 403, "VAULT_LOCKED");
    await mustUnlock(server);
    expect((await mustGet(server, "a"))["value"]).to.equal("v");
  });

  it("requests that run during a crash of the key worker get an error or the right value", async () => {
    const server = await unlockedServer();
    const paths = Array.from({ length: 20 }, (_, n) => `secret-${n}`);
    for (const path of paths) await mustPut(server, path, `of ${path}`);
    for (let round = 0; round < 10; round++) {
      const answers = paths.map((path) => send(server, { path: `/v1/secrets/${path}` }));
      await answers[2 * round - 1]; // in the first round the crash comes with the requests
      await crashKeyWorkers();
      for (const [i, { status, json }] of (await Promise.all(answers)).entries()) {
        if (status === 200) expect(json["value"]).to.equal(`of ${paths[i]}`);
        else expect(json["code"]).to.be.oneOf(["INTERNAL", "VAULT_LOCKED"]);
      }
      await mustUnlock(server);
    }
  });
});

describe("unknown routes", () => {
  const server = shareTestServer({}, mustInit);
  const unknown = [
    "/",
    "/v1",
    "/v1/",
    "/v2/status",
    "/v1/Status",
    "/V1/status",
    "/v1/status/",
    "/v1/init/",
    "/v1/secret",
    "//v1/status",
  ];
  for (const path of unknown) {
    it(`GET ${path} with a valid token returns 404 NOT_FOUND`, async () => {
      mustRefuse(await send(server(), { path }), 404, "NOT_FOUND");
    });
  }
});

describe("damaged, moved and foreign blobs", () => {
  const server = shareTestServer(uncached, async (fresh) => {
    await mustInit(fresh);
    await mustPut(fresh, "good", "good");
    for (const name of ["cut", "flipped", "empty", "directory"]) await mustPut(fresh, name, "v");
    await mustPut(fresh, "from", "moved");
    await mustPut(fresh, "to", "replaced");
    await damage(fresh);
  });

  async function damage(fresh: TestServer): Promise<void> {
    const { readFile, copyFile, mkdir, rm, truncate } = await import("node:fs/promises");
    await truncate(secretFile(fresh, "cut"), 60);
    await truncate(secretFile(fresh, "empty"), 0);
    const blob = await readFile(secretFile(fresh, "flipped"));
    blob[blob.length - 1] = (blob.at(-1) ?? 0) ^ 1;
    await writeFile(secretFile(fresh, "flipped"), blob);
    await copyFile(secretFile(fresh, "from"), secretFile(fresh, "to"));
    await rm(secretFile(fresh, "directory"));
    await mkdir(secretFile(fresh, "directory"));
  }

  for (const name of ["cut", "flipped", "empty", "to", "directory"]) {
    it(`a damaged secret returns 500 INTEGRITY that names the path (${name})`, async () => {
      const answer = await send(server(), { path: `/v1/secrets/${name}` });
      mustRefuse(answer, 500, "INTEGRITY");
      expect(answer.json["error"]).to.contain(name);
    });
  }

  it("damaged secrets leave every other secret and the list working", async () => {
    expect((await mustGet(server(), "good"))["value"]).to.equal("good");
    const { entries, damaged } = mustSucceed(await send(server(), { path: "/v1/secrets" }));
    expect((entries as { path: string }[]).map(({ path }) => path)).to.deep.equal(["flipped", "from", "good"]);
    expect(damaged).to.deep.equal(["cut", "directory", "empty", "to"]);
  });

  it("a damaged secret is not overwritten by a put, and can be deleted and stored again", async () => {
    const put = { method: "PUT", path: "/v1/secrets/cut", body: { value: "new" } };
    mustRefuse(await send(server(), put), 500, "INTEGRITY");
    mustSucceed(await send(server(), { method: "DELETE", path: "/v1/secrets/cut" }));
    mustSucceed(await send(server(), put));
    expect((await mustGet(server(), "cut"))["value"]).to.equal("new");
  });
});

describe("failing storage", () => {
  const { files, fail, failOnce, repair } = failingFiles();
  const clock = new FakeClock(Date.now()); // stands still: the operations that are counted are those of the request
  const shared = shareTestServer({ files, clock, idleTimeoutMs: 0 }, mustInit);
  const steps = ["open", "writeFile", "sync", "rename"] as const;
  for (const step of steps) {
    for (const code of ["ENOSPC", "EIO", "EROFS"] as const) {
      it(`a put whose ${step} fails with ${code} returns 503 UNAVAILABLE, and nothing is lost or half-written`, async () => {
        const server = shared();
        await mustPut(server, "a/b", "old");
        fail(step, code);
        mustRefuse(
          await send(server, { method: "PUT", path: "/v1/secrets/a/b", body: { value: "new" } }),
          503,
          "UNAVAILABLE",
        );
        mustRefuse(
          await send(server, { method: "PUT", path: "/v1/secrets/n/e/w", body: { value: "new" } }),
          503,
          "UNAVAILABLE",
        );
        repair();
        expect((await mustGet(server, "a/b"))["value"]).to.equal("old");
        expect((await mustList(server)).map(({ path }) => path)).to.deep.equal(["a/b"]);
        await mustPut(server, "a/b", "newer");
        expect((await mustGet(server, "a/b"))["value"]).to.equal("newer");
      });
    }
  }

  it("an init with an invalid force returns 400, not 409: the body is checked before the conflict", async () => {
    const server = await unlockedServer();
    const body = { passphrase, force: "yes" };
    mustRefuse(await send(server, { method: "POST", path: "/v1/init", body }), 400, "BAD_REQUEST");
  });

  it("a forced init that cannot be written leaves the old vault unchanged, whichever file operation fails", async () => {
    const server = shared();
    await mustPut(server, "a", "old");
    for (let k = 1; k <= 40; k++) {
      failOnce(k, "EIO");
      const answer = await send(server, { method: "POST", path: "/v1/init", body: { passphrase, force: true } });
      repair();
      if (answer.status === 200) return expect(k).to.be.above(8);
      mustRefuse(answer, 503, "UNAVAILABLE");
      expect((await mustGet(server, "a"))["value"], `operation ${k}`).to.equal("old");
      await mustLock(server);
      await mustUnlock(server);
      expect((await mustGet(server, "a"))["value"], `operation ${k}`).to.equal("old");
    }
    return expect.fail("no attempt succeeded");
  });

  it("requests that arrive during a shutdown get 503 UNAVAILABLE and store nothing", async () => {
    const server = await unlockedServer();
    const put = await halfSent(server, "PUT /v1/secrets/late", { value: "v" });
    const get = await halfSent(server, "POST /v1/unlock", { passphrase });
    await mustStatus(server); // it has read them
    mustSucceed(await send(server, { method: "POST", path: "/v1/shutdown" }));
    await new Promise((resolve) => setTimeout(resolve, 100));
    for (const answer of await Promise.all([put(), get()])) {
      expect(parseRaw(answer).status, answer).to.equal(503);
      expect(parseRaw(answer).json["code"]).to.equal("UNAVAILABLE");
    }
    await server.stopped;
    const again = await startTestServer({ home: server.home });
    expect((await mustStatus(again))["secretCount"]).to.equal(0);
  });
});

/** Sends a request except for its last byte. The returned function sends the rest and returns the response. */
async function halfSent(server: TestServer, line: string, object: object): Promise<() => Promise<string>> {
  const socket = connectRaw(server);
  let received = "";
  socket.on("error", () => {});
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString("latin1");
  });
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  await new Promise((resolve) => socket.once("secureConnect", resolve));
  const body = JSON.stringify(object);
  const head = `${line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.token}\r\n`;
  socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body.slice(0, -1)}`);
  return async () => {
    socket.write(body.slice(-1));
    await closed;
    return received;
  };
}
