/** docs/http-api.md, Errors and Order of checks. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { type ErrorCode, statusOf } from "../../src/errors.js";
import { passphrase, shareTestServer, startTestServer, type TestServer, uncached } from "../../tools/rig/server.js";
import {
  connectRaw,
  mustCreateToken,
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
  type Send,
  send,
  sendRaw,
} from "../../tools/rig/test-client.js";
import { keyWorkerAsked } from "../support/asked-worker.js";
import { crashKeyWorkers } from "../support/crash-key-worker.js";
import { failingFiles } from "../support/failing-files.js";
import { FakeClock } from "../support/manual-clock.js";

const unlock = { method: "POST", path: "/v1/unlock", body: { passphrase } };

type Situation = { readonly server: TestServer; readonly request: Send; readonly during?: () => Promise<void> };

/** How to provoke each code. */
const causes: Readonly<Record<ErrorCode, () => Promise<Situation>>> = {
  BAD_REQUEST: async () => ({
    server: await unlockedServer(),
    request: { method: "PUT", path: "/v1/secrets/a", body: "{}" },
  }),
  UNAUTHORIZED: async () => ({ server: await startTestServer(), request: { path: "/v1/secrets", token: null } }),
  FORBIDDEN: async () => {
    const server = await unlockedServer();
    const { token } = await mustCreateToken(server, { name: "reader" });
    return { server, request: { method: "DELETE", path: "/v1/secrets/a", token } };
  },
  VAULT_LOCKED: async () => ({ server: await startTestServer(), request: { path: "/v1/secrets" } }),
  NOT_FOUND: async () => ({ server: await unlockedServer(), request: { path: "/v1/secrets/a" } }),
  ALREADY_EXISTS: async () => ({ server: await unlockedServer(), request: { ...unlock, path: "/v1/init" } }),
  PRECONDITION_FAILED: async () => ({
    server: await unlockedServer(),
    request: { method: "DELETE", path: "/v1/secrets/a", headers: { "if-match": "*" } },
  }),
  RATE_LIMITED: async () => {
    const server = await startTestServer();
    for (let i = 0; i < 10; i++) await send(server, { path: "/v1/secrets", token: "wrong" });
    return { server, request: { path: "/v1/secrets" } };
  },
  INTEGRITY: async () => {
    const server = await unlockedServer(uncached);
    await mustPut(server, "a", "v");
    await writeFile(secretFile(server, "a"), "not a blob");
    return { server, request: { path: "/v1/secrets/a" } };
  },
  UNAVAILABLE: async () => {
    const { files, fail } = failingFiles();
    const server = await unlockedServer({ files });
    fail("rename", "ENOSPC");
    return { server, request: { method: "PUT", path: "/v1/secrets/a", body: { value: "v" } } };
  },
  INTERNAL: async () => {
    const server = await unlockedServer({ scryptLogN: 15 });
    return { server, request: unlock, during: crashKeyWorkers };
  },
};

async function unlockedServer(options = {}): Promise<TestServer> {
  const server = await startTestServer(options);
  await mustInit(server);
  return server;
}

function secretFile(server: TestServer, name: string): string {
  return join(server.home, "vault", "gen-1", "secrets", `${name}.sealed`);
}

describe("errors", () => {
  for (const [code, status] of Object.entries(statusOf)) {
    it(`${code} has status ${status} and a JSON object with error and code`, async () => {
      const { server, request, during } = await causes[code as ErrorCode]();
      const deriving = during && keyWorkerAsked("unlock");
      const answer = send(server, request);
      if (during) {
        await deriving;
        await during();
      }
      mustRefuse(await answer, status, code);
    });
  }

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
    const { server, request } = await causes.INTEGRITY();
    const { json } = await send(server, request);
    expect(json["requestId"]).to.match(/^[0-9a-f-]{36}$/);
    expect(server.logged()).to.contain(String(json["requestId"]));
  });
});

describe("a crash of the key worker", () => {
  it("leaves the vault locked and the server up; the next unlock works", async () => {
    const server = await unlockedServer();
    await mustPut(server, "a", "v");
    await crashKeyWorkers();
    expect((await mustStatus(server))["locked"]).to.equal(true);
    mustRefuse(await send(server, { path: "/v1/secrets/a" }), 403, "VAULT_LOCKED");
    await mustUnlock(server);
    expect((await mustGet(server, "a"))["value"]).to.equal("v");
  });

  it("gives running requests an error or the right value, never a wrong one", async () => {
    const server = await unlockedServer();
    await mustPut(server, "a", "v");
    for (let round = 0; round < 10; round++) {
      const answers = Array.from({ length: 20 }, () => send(server, { path: "/v1/secrets/a" }));
      await Promise.all([crashKeyWorkers(), ...answers.slice(0, round)]);
      for (const { status, json } of await Promise.all(answers)) {
        if (status === 200) expect(json["value"]).to.equal("v");
        else expect(json["code"]).to.be.oneOf(["INTERNAL", "VAULT_LOCKED"]);
      }
      await mustUnlock(server);
    }
    expect((await mustGet(server, "a"))["value"]).to.equal("v");
  });
});

describe("the order of checks", () => {
  const server = shareTestServer();
  const orders: readonly (readonly [string, Send, number, string])[] = [
    [
      "checks Host before the token",
      { path: "/v1/secrets", token: null, headers: { host: "evil.test" } },
      400,
      "BAD_REQUEST",
    ],
    ["checks the token before the route", { path: "/nowhere", token: null }, 401, "UNAUTHORIZED"],
    ["checks the token before the method", { method: "PATCH", path: "/v1/init", token: null }, 401, "UNAUTHORIZED"],
    [
      "checks the token before the body",
      { method: "POST", path: "/v1/init", body: "{", token: null },
      401,
      "UNAUTHORIZED",
    ],
    ["checks the route before the lock", { path: "/v1/secret/a" }, 404, "NOT_FOUND"],
    ["checks the method before the lock", { method: "POST", path: "/v1/secrets/a" }, 404, "NOT_FOUND"],
    ["checks the lock before the path", { path: "/v1/secrets/%zz" }, 403, "VAULT_LOCKED"],
    ["checks the lock before the body", { method: "PUT", path: "/v1/secrets/a", body: "{" }, 403, "VAULT_LOCKED"],
    ["checks the lock before the secret exists", { path: "/v1/secrets/a" }, 403, "VAULT_LOCKED"],
  ];
  for (const [name, request, status, code] of orders) {
    it(name, async () => mustRefuse(await send(server(), request), status, code));
  }

  it("checks the body before the conflict: init without a passphrase returns 400, not 409", async () => {
    const initialized = await unlockedServer();
    mustRefuse(await send(initialized, { method: "POST", path: "/v1/init", body: {} }), 400, "BAD_REQUEST");
    mustRefuse(
      await send(initialized, { ...unlock, path: "/v1/init", body: { passphrase, force: "yes" } }),
      400,
      "BAD_REQUEST",
    );
  });

  it("checks a token's paths before a byte of the body is asked for", async () => {
    const initialized = await unlockedServer();
    const { token } = await mustCreateToken(initialized, { name: "in", can: ["put", "encrypt"], paths: ["in/"] });
    for (const line of ["PUT /v1/secrets/out", "PATCH /v1/metadata/out", "POST /v1/transit/encrypt/out"]) {
      const head = `${line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n`;
      const received = await sendRaw(initialized, `${head}Expect: 100-continue\r\nContent-Length: 20\r\n\r\n`);
      expect(received).to.match(/^HTTP\/1\.1 403 /);
    }
  });

  it("checks the path before the secret exists", async () => {
    const initialized = await unlockedServer();
    mustRefuse(await send(initialized, { path: "/v1/secrets/a//b" }), 400, "BAD_REQUEST");
  });
});

describe("unknown routes and wrong methods", () => {
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

  const wrong: readonly (readonly [string, string, string])[] = [
    ["GET", "/v1/init", "POST"],
    ["PUT", "/v1/unlock", "POST"],
    ["GET", "/v1/lock", "POST"],
    ["DELETE", "/v1/status", "GET, HEAD"],
    ["GET", "/v1/shutdown", "POST"],
    ["POST", "/v1/secrets", "GET, HEAD"],
    ["DELETE", "/v1/secrets", "GET, HEAD"],
    ["POST", "/v1/secrets/a", "GET, HEAD, PUT, DELETE"],
    ["OPTIONS", "/v1/secrets/a", "GET, HEAD, PUT, DELETE"],
    ["TRACE", "/v1/status", "GET, HEAD"],
  ];
  for (const [method, path, allow] of wrong) {
    it(`${method} ${path} returns 404 NOT_FOUND with Allow: ${allow}`, async () => {
      const answer = await send(server(), { method, path });
      mustRefuse(answer, 404, "NOT_FOUND");
      expect(answer.headers.allow).to.equal(allow);
    });
  }
});

describe("a damaged, moved or foreign blob", () => {
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
    it(`returns 500 INTEGRITY that names the path (${name})`, async () => {
      const answer = await send(server(), { path: `/v1/secrets/${name}` });
      mustRefuse(answer, 500, "INTEGRITY");
      expect(answer.json["error"]).to.contain(name);
    });
  }

  it("leaves every other secret working, and the list", async () => {
    expect((await mustGet(server(), "good"))["value"]).to.equal("good");
    const { entries, damaged } = mustSucceed(await send(server(), { path: "/v1/secrets" }));
    expect((entries as { path: string }[]).map(({ path }) => path)).to.deep.equal(["flipped", "from", "good"]);
    expect(damaged).to.deep.equal(["cut", "directory", "empty", "to"]);
  });

  it("is not overwritten by a put, and can be deleted and stored again", async () => {
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
