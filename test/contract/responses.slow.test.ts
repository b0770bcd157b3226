/** Every response in the OpenAPI document can be provoked: each operation with each status and code. */
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { get as httpGet } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { bind, startUpstream, startWithBroker } from "../../tools/rig/broker-rig.js";
import { documented, judge, unseenResponses } from "../../tools/rig/contract-judge.js";
import { passphrase, shareTestServer, startTestServer, type TestServer, uncached } from "../../tools/rig/server.js";
import {
  type ApiResponse,
  connectRaw,
  mustCreateToken,
  mustInit,
  mustLock,
  mustPut,
  mustStatus,
  type Send,
  send,
} from "../../tools/rig/test-client.js";
import { crashWhenAsked } from "../support/crash-key-worker.js";
import { headerFile } from "../support/damage.js";
import { deleting, mustCreateKey, mustRotate } from "../support/key-requests.js";
import { FakeClock } from "../support/manual-clock.js";
import { contractRequests, prepare } from "../support/request-rig.js";
import { there } from "../support/requests.js";

const requests = contractRequests();

/** Also after a request has locked the vault or deleted the secret. */
async function unlock(server: TestServer): Promise<void> {
  const { initialized } = await mustStatus(server);
  if (initialized !== true) await mustInit(server);
  await prepare(server);
}

/** As `unlock`; the sweep of a rotation that ends in a crash locks once more, at any time, and a new thread waits its turn. */
async function unlockAfterCrash(server: TestServer): Promise<void> {
  try {
    await unlock(server);
  } catch (error) {
    if (!/"(?:VAULT_LOCKED|UNAVAILABLE)"/.test(String(error))) throw error;
    await sleep(50);
    await unlockAfterCrash(server);
  }
}

/** Locked, they are not refused: only a lock while they derive does that. */
const derives = new Set(["init", "unlock", "changePassphrase", "createKey", "rotate"]);

/** The header's MAC is wrong, and its slot intact. */
async function startOnChangedHeader(): Promise<TestServer> {
  const server = await startTestServer();
  await unlock(server);
  await server.stop();
  const file = headerFile(server);
  await writeFile(file, (await readFile(file, "utf8")).replace('"createdAt":"2', '"createdAt":"1'));
  return startTestServer({ home: server.home });
}

/** With a client token whose record no unlock has checked yet. */
async function sendAfterRestart(request: Send): Promise<ApiResponse> {
  const before = await startTestServer();
  await unlock(before);
  const { token } = await mustCreateToken(before, { name: "auditor", can: ["audit"] });
  await before.stop();
  return send(await startTestServer({ home: before.home }), { ...request, token });
}

/** Locked, so that the rotation does not finish. */
async function startRotating(): Promise<TestServer> {
  const server = await startTestServer();
  await unlock(server);
  await mustLock(server);
  await mustRotate(server);
  return server;
}

async function lockOut(server: TestServer): Promise<void> {
  for (let i = 0; i < 10; i++) await send(server, { path: "/v1/secrets", token: "wrong" });
}

/** Requests that make another request possible again. */
const reverses = new Map([
  [requests["trash"], { method: "POST", path: `/v1/untrash/${there.secret}` }],
  [requests["untrash"], { method: "POST", path: `/v1/trash/${there.trashed}` }],
]);

/** Runs `during` while clients repeat the request without pause, so that some are always running. */
async function together(server: TestServer, request: Send, during: () => Promise<unknown>): Promise<void> {
  let done = false;
  let sent = 0;
  const isCreation = request === requests["createToken"];
  const reverse = reverses.get(request);
  const client = async () => {
    while (!done) {
      await send(server, isCreation ? { ...request, body: { name: `${Date.now()}-${sent++}` } } : request);
      if (reverse !== undefined) await send(server, reverse);
    }
  };
  const clients = Array.from({ length: 4 }, client);
  await sleep(10);
  await during();
  done = true;
  await Promise.all(clients);
}

async function untilSeen(response: string, attempt: () => Promise<unknown>): Promise<void> {
  for (let tries = 0; tries < 50 && unseenResponses().includes(response); tries++) await attempt();
}

/** Sends the beginning of a request. The returned function sends the rest and judges the response, if there is one. */
async function begin(server: TestServer, { method = "GET", path }: Send): Promise<() => Promise<void>> {
  const socket = connectRaw(server);
  let received = "";
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString("latin1");
  });
  const closed = new Promise<void>((resolve) => socket.on("error", () => {}).once("close", () => resolve()));
  await new Promise((resolve) => socket.once("secureConnect", resolve));
  socket.write(`${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.token}\r\n`);
  return async () => {
    socket.write("\r\n");
    await closed;
    if (received !== "") judge({ method, target: path, ...parsed(received) });
  };
}

function parsed(received: string): Pick<ApiResponse, "status" | "headers" | "text"> {
  const end = received.indexOf("\r\n\r\n");
  const [first = "", ...lines] = received.slice(0, end).split("\r\n");
  const headers = lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.replace(/^.*?: /, "")]);
  return { status: Number(first.split(" ")[1]), headers: Object.fromEntries(headers), text: received.slice(end + 4) };
}

/** Sends every request whose refusal was not seen to a server that is shutting down; one that is slow may not answer in time. */
async function sendDuringShutdown(): Promise<void> {
  const server = await startTestServer();
  const missing = Object.entries(requests).filter(([name]) => unseenResponses().includes(`${name} 503 UNAVAILABLE`));
  const finishes = await Promise.all(missing.map(([, request]) => begin(server, request)));
  await mustStatus(server); // it has read them all, before it looks for idle connections
  await send(server, { method: "POST", path: "/v1/shutdown" });
  await Promise.all(finishes.map((finish) => finish()));
}

/** Whether what the request does would change the answers to others. */
function isLasting(operation: string): boolean {
  return ["init", "shutdown", "batch", "changePassphrase", "createKey", "deleteKey", "rotate"].includes(operation);
}

type Cause = (request: Send, operation: string) => Promise<unknown>;

function have(responses: readonly string[], causes: Readonly<Record<string, Cause>>): void {
  for (const response of responses) {
    it(`a documented response is sent: ${response}`, async () => {
      const [operation = "", , code = ""] = response.split(" ");
      const request = requests[operation];
      if (request === undefined) return expect.fail(`there is no request for ${operation}`);
      await causes[code]?.(request, operation);
      return expect(unseenResponses()).not.to.include(response);
    });
  }
}

/** Sends a request through the broker that waits for approval, and returns its id. */
async function waitingApproval(server: TestServer): Promise<string> {
  const use = { host: "a.test", name: "a", ask: "request" };
  await send(server, { method: "PUT", path: `/v1/uses/${there.secret}`, body: use });
  const { json } = await send(server, requests["createAgent"] as Send);
  const headers = { "x-api-key": String(json["token"]) };
  httpGet({ host: "127.0.0.1", port: server.brokerPort ?? 0, path: "/r/a/", headers }, (res) => res.resume()).on(
    "error",
    () => {},
  );
  for (;;) {
    const { approvals } = (await send(server, { path: "/v1/approvals" })).json as {
      readonly approvals: readonly { readonly id: string }[];
    };
    if (approvals[0] !== undefined) return approvals[0].id;
    await sleep(5);
  }
}

/** Their secret is in the trash. */
const ofTrashed = ["untrash", "destroyTrashed"];

/** Some requests need an id that the server has given. */
async function requestFor(server: TestServer, operation: string, request: Send): Promise<Send> {
  if (operation === "deleteKey") return deleting((await mustCreateKey(server)).id);
  if (operation === "tradeReviewCode") {
    const { code } = (await send(server, requests["createReview"] as Send)).json;
    return { ...request, body: { code } };
  }
  if (operation === "decideApproval") return { ...request, path: `/v1/approvals/${await waitingApproval(server)}` };
  return request;
}

/** Sends a login to a server whose secret is bound with a token endpoint. */
async function sendLogin(request: Send): Promise<ApiResponse> {
  const upstream = await startUpstream(["localhost"], (_, res) => {
    res.writeHead(200, { "content-type": "application/json" });
    res.end('{"access_token":"a","token_type":"bearer","refresh_token":"r"}');
  });
  const server = await startWithBroker([upstream]);
  await mustPut(server, there.secret, "{}");
  const oauth = { tokenUrl: `https://localhost:${upstream.port}/`, clientId: "id" };
  await bind(server, there.secret, { host: "localhost", private: true, oauth });
  return send(server, { ...request, path: `/v1/uses/${there.secret}?host=localhost` });
}

async function sendWithoutOptions(request: Send): Promise<ApiResponse> {
  const server = await startTestServer({ reviewPage: false });
  await unlock(server);
  return send(server, request);
}

/** Damages what the request works on. Some work on a corrupt blob, and only a directory in its place stops them. */
async function corrupt(server: TestServer, operation: string, { path }: Send): Promise<void> {
  const vault = join(server.home, "vault", "gen-1");
  if (/Tokens?$|^createAgent$/.test(operation)) return writeFile(join(vault, "tokens.document"), "{");
  const others = path.startsWith("/v1/transit/") ? "keys" : "secrets";
  const subject = /app\/\w+/.exec(path)?.[0] ?? there.secret;
  const file = join(vault, ofTrashed.includes(operation) ? "trash" : others, `${subject}.sealed`);
  while (!existsSync(file)) await sleep(1); // what is moved is written in the background
  if (!["delete", "trash", "destroyTrashed"].includes(operation)) return writeFile(file, "not a blob");
  await rm(file);
  await mkdir(file);
}

/** Operations that a server without a broker or a review page does not have. */
const ofBroker = ["logIn", "createAgent", "showBroker", "listApprovals"];
const ofReviewPage = ["createReview", "reviewFacts", "tradeReviewCode", "reviewStorm"];
const optional = new Set([...ofBroker, ...ofReviewPage]);
const neededByMetrics = new Set(["metrics", "vitals"]);

const crashes = documented.filter((response) => response.endsWith("INTERNAL"));

describe("documented responses", () => {
  const clock = new FakeClock();
  const fresh = shareTestServer({ clock, brokerPort: 0, reviewPage: true });
  const unlocked = shareTestServer({ brokerPort: 0, reviewPage: true }, unlock);
  const changed = shareTestServer({ brokerPort: 0, reviewPage: true }, unlock);
  const lockedOut = shareTestServer({}, lockOut);
  have(
    documented.filter((response) => !crashes.includes(response)),
    {
      async ""(request, operation) {
        if (operation === "logIn") return void (await sendLogin(request));
        const server = isLasting(operation) ? await startTestServer() : changed();
        await unlock(server);
        await send(server, await requestFor(server, operation, request));
        if (operation === "get") await send(server, { ...request, headers: { "if-none-match": "*" } }); // 304
        if (operation === "status") await send(fresh(), { ...request, path: "/v1/status?require=unlocked" }); // 503
      },
      BAD_REQUEST: (request) => send(fresh(), { ...request, headers: { host: "evil.test" } }),
      async UNAUTHORIZED(request) {
        await send(fresh(), { ...request, token: "wrong" });
        clock.advance(60_000); // ten within a minute would be too many
      },
      async NOT_FOUND(request, operation) {
        if (operation === "readAudit") return send(await startTestServer({ audit: "off" }), request);
        if (optional.has(operation)) return sendWithoutOptions(request);
        if (operation === "batch")
          return send(unlocked(), { ...request, body: { operations: [{ delete: "missing" }] } });
        if (/TransitKey$/.test(operation))
          return send(unlocked(), { ...request, path: request.path.replace(/app\/\w+/, "missing") });
        return send(unlocked(), { ...request, path: request.path.replace(/(?=\?|$)/, "/b") });
      },
      // A secret in the trash and none there: both fail the condition.
      PRECONDITION_FAILED: (request, operation) =>
        operation === "batch"
          ? send(unlocked(), { ...request, body: { operations: [{ delete: there.secret, ifMatch: "another" }] } })
          : send(unlocked(), { ...request, headers: { "if-match": '"another"' } }),
      async ALREADY_EXISTS(request, operation) {
        if (operation === "rotate") return send(await startRotating(), request);
        const bodies: Readonly<Record<string, object>> = { init: { passphrase }, createToken: { name: "ci" } };
        await send(unlocked(), { ...request, ...(bodies[operation] && { body: bodies[operation] }) });
        if (operation === "untrash") {
          await unlock(unlocked());
          await mustPut(unlocked(), there.trashed, "again");
        }
        return /^(?:create(?:Transit)?Key|untrash)$/.test(operation) && send(unlocked(), request);
      },
      RATE_LIMITED: (request) => send(lockedOut(), request),
      async FORBIDDEN(request, operation) {
        const { token } = await mustCreateToken(unlocked(), {
          name: operation.toLowerCase(),
          can: [neededByMetrics.has(operation) ? "get" : "metrics"],
        });
        await send(unlocked(), { ...request, token });
      },
      async VAULT_LOCKED(request, operation) {
        if (operation === "readAudit") return sendAfterRestart(request);
        if (!derives.has(operation)) return send(fresh(), request);
        const server = await startTestServer();
        await unlock(server);
        return untilSeen(`${operation} 403 VAULT_LOCKED`, () => together(server, request, () => mustLock(server)));
      },
      async INTEGRITY(request, operation) {
        if (derives.has(operation)) return send(await startOnChangedHeader(), request);
        // Blobs that move to the trash are written in the background, at times over the damage.
        return untilSeen(`${operation} 500 INTEGRITY`, async () => {
          const server = await startTestServer({ ...uncached, brokerPort: ofBroker.includes(operation) ? 0 : null });
          await unlock(server);
          await corrupt(server, operation, request);
          if (operation === "listTokens") await send(server, requests["createToken"] as Send); // finds the damage
          await send(server, request);
        });
      },
      UNAVAILABLE: (_, operation) => untilSeen(`${operation} 503 UNAVAILABLE`, sendDuringShutdown),
    },
  );
});

describe("documented responses to a crash of the key worker", () => {
  const server = shareTestServer({ brokerPort: 0, reviewPage: true }, unlock);

  async function sendInCrash(request: Send): Promise<void> {
    await unlockAfterCrash(server()); // a forced init may have taken the secret away
    await mustPut(server(), "new", "v"); // a list of uses is read again
    const isOver = crashWhenAsked();
    await send(server(), request);
    isOver();
  }

  have(crashes, {
    INTERNAL: (request, operation) => untilSeen(`${operation} 500 INTERNAL`, () => sendInCrash(request)),
  });

  // The judge fails this file for any other response.
  it("a crash is answered as documented where INTERNAL is not documented", async () => {
    for (const [operation, request] of Object.entries(requests)) {
      if (operation !== "shutdown" && !crashes.includes(`${operation} 500 INTERNAL`)) await sendInCrash(request);
    }
  });
});
