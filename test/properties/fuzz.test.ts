/** Fuzzing of the HTTP interface: no 500, no hang, no response without JSON, no canary in a response or the log. */
import { expect } from "chai";
import fc from "fast-check";
import { startTestServer, type TestServer } from "../../tools/rig/server.js";
import {
  type ApiResponse,
  connectRaw,
  mustInit,
  mustPut,
  mustStatus,
  mustUnlock,
  send,
} from "../../tools/rig/test-client.js";
import { codePoint } from "../support/code-points.js";
import { FakeClock } from "../support/manual-clock.js";

/** A response may name the path, the log may not. */
const pathCanary = "canary-of-a-path";
const canaries = { passphrase: "canary-of-a-passphrase", value: "canary-of-a-value" };

const method = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("GET", "PUT", "POST", "DELETE") },
  { weight: 1, arbitrary: fc.constantFrom("PATCH", "OPTIONS", "HEAD", "TRACE", "PROPFIND") },
);
const noise = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((c) => String.fromCharCode(c)),
  maxLength: 20,
});
const piece = fc.oneof(
  noise,
  fc.constantFrom("a", "..", ".", "", "%2F", "%00", "%", "%C3%A9", "%ED%A0%80", "con", pathCanary),
);
const target = fc.oneof(
  fc.constantFrom("/v1/status", "/v1/init", "/v1/unlock", "/v1/lock", "/", "*", "//", "/v1"),
  { weight: 2, arbitrary: fc.constant("/v1/batch") },
  { weight: 4, arbitrary: fc.constantFrom("/v1/secrets", "/v1/secrets/", "/v1/secrets/kept", "/v1/secrets/a/b") },
  fc.constantFrom("http://[", "http://?", "x://", "https://localhost:1a/v1/secrets/x", "http://a:b@[::/"),
  fc.array(piece, { maxLength: 6 }).map((pieces) => `/v1/secrets/${pieces.join("/")}`),
  fc.array(piece, { maxLength: 4 }).map((pieces) => `/v1/secrets?prefix=${pieces.join("&limit=")}`),
  piece.map((text) => `/${text}`),
);
const invalid = fc.oneof(
  fc.constantFrom<unknown>(null, true, 0, "", "\ud800", [], {}),
  fc.string({ unit: codePoint, maxLength: 50 }),
  fc.jsonValue(),
);
const field = fc.oneof(fc.constantFrom<unknown>(canaries.value, canaries.passphrase), {
  weight: 3,
  arbitrary: invalid,
});
const json = fc.dictionary(fc.constantFrom("value", "passphrase", "type", "description", "force", "x"), field);
const operationField = fc.oneof(
  fc.tuple(
    fc.constantFrom("get", "put", "delete", "trash", "move", "copy", "to"),
    fc.oneof(fc.constantFrom<unknown>("kept", "a", "b", "a/b", pathCanary), invalid),
  ),
  fc.tuple(
    fc.constantFrom("value", "ifMatch", "ifNoneMatch", "type"),
    fc.oneof(fc.constantFrom<unknown>("kept", "a", "*", "password"), field),
  ),
);
const operation = fc
  .uniqueArray(operationField, { selector: ([name]) => name, maxLength: 3 })
  .map((fields) => Object.fromEntries(fields));
const operations = fc.array(operation, { maxLength: 4 });
const body = fc.oneof(
  { weight: 2, arbitrary: operations.map((list) => Buffer.from(JSON.stringify({ operations: list }))) },
  json.map((object) => Buffer.from(JSON.stringify(object))),
  json.map((object) => Buffer.from(JSON.stringify(object).slice(0, -2))),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  noise.map((text) => Buffer.from(`{"value":"${canaries.value}","x":${text}}`)),
);
const headers = fc.dictionary(
  fc.constantFrom(
    "content-type",
    "content-encoding",
    "accept",
    "origin",
    "x-forwarded-for",
    "expect",
    "if-none-match",
    "range",
    "cookie",
  ),
  fc.oneof(noise, fc.constantFrom("gzip", "identity", "100-continue", "bytes=0-1", "https://localhost", "*/*")),
  { maxKeys: 2 },
);
const token = fc.oneof(
  { weight: 20, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: fc.constantFrom(null, "wrong") },
);
const request = fc.record({ method, path: target, body, headers, token });
type Generated = typeof request extends fc.Arbitrary<infer R> ? R : never;

/** Short in the normal suite; 10,000 and 1,000 in the long form. */
const requestCount = Number(process.env["STRONGROOM_FUZZ_REQUESTS"] ?? 300);
const pieceCount = Number(process.env["STRONGROOM_FUZZ_PIECES"] ?? 60);

const allowed = new Set([200, 400, 401, 403, 404, 409, 412, 429]);

describe("fuzz", () => {
  it(`${requestCount} generated requests cause no 500, no hang, no response without JSON and no leaked canary`, async function () {
    this.timeout(300_000);
    const clock = new FakeClock();
    const server = await fresh(clock);
    const requests = fc.sample(request, requestCount);
    const statuses = new Map<number, number>();
    for (let at = 0; at < requests.length; at += 25) {
      clock.advance(301_000); // ends any lockout
      await unlockAnew(server);
      const answers = await Promise.all(requests.slice(at, at + 25).map((next) => exchange(server, next)));
      for (const [i, answer] of answers.entries()) {
        mustBeSound(answer, requests[at + i] as Generated, server.token);
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      }
    }
    for (const status of [200, 400, 401, 404]) expect(statuses.get(status), `${status}`).to.be.above(requestCount / 50);
    expect((statuses.get(429) ?? 0) + (statuses.get(403) ?? 0), "too few requests reached the vault").to.be.below(
      requestCount / 2,
    );
    for (const canary of [...Object.values(canaries), pathCanary, server.token])
      expect(server.logged()).not.to.contain(canary);
  });

  it(`${pieceCount} pieces of malformed HTTP each get a JSON 400 or a closed connection`, async () => {
    const server = await fresh();
    const line = fc.constantFrom(
      ...[
        "GET / HTTP/1.1",
        "GET /v1/status HTTP/1.1",
        "GET /v1/status HTTP/9.9",
        "GET  /v1/status",
        "\u0000",
        "PRI * HTTP/2.0",
        "CONNECT a:1 HTTP/1.1",
      ],
      ...[
        "Host: localhost",
        "Host: localhost",
        "Host: evil.test",
        "Host:",
        "Content-Length: -1",
        "Content-Length: 5",
        "Content-Length: 1e9",
      ],
      ...[
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Content-Length: 5\r\nContent-Length: 6",
        "X: \u0001",
        ": x",
        "x",
      ],
      ...[
        `Authorization: Bearer ${server.token}`,
        "Upgrade: websocket\r\nConnection: upgrade",
        "5\r\nhello\r\n0",
        "",
        "",
        "zz",
        `X: ${"y".repeat(9000)}`,
      ],
    );
    const pieces = fc.sample(
      fc.array(line, { minLength: 1, maxLength: 7 }).map((lines) => `${lines.join("\r\n")}\r\n\r\n`),
      pieceCount,
    );
    for (let at = 0; at < pieces.length; at += 50) {
      const received = await Promise.all(pieces.slice(at, at + 50).map((piece) => exchangeRaw(server, piece)));
      for (const [i, text] of received.entries()) mustBeSoundRaw(text, pieces[at + i] ?? "");
    }
    expect((await mustStatus(server))["serverRunning"]).to.equal(true);
  });
});

/** A generated request may have locked the vault, or replaced it under another passphrase. */
async function unlockAnew(server: TestServer): Promise<void> {
  const { passphrase } = canaries;
  const { status } = await send(server, { method: "POST", path: "/v1/unlock", body: { passphrase } });
  if (status === 200) return;
  await mustInit(server, { passphrase, force: true });
  await mustPut(server, "kept", canaries.value);
}

async function fresh(clock = new FakeClock()): Promise<TestServer> {
  const server = await startTestServer({ idleTimeoutMs: 0, clock });
  await mustInit(server, { passphrase: canaries.passphrase });
  await mustUnlock(server, canaries.passphrase);
  await mustPut(server, "kept", canaries.value);
  return server;
}

/** Sends valid HTTP only: Content-Length is right, and the target has no characters that Node refuses. */
async function exchange(server: TestServer, { token: chosen, path, ...rest }: Generated): Promise<ApiResponse> {
  return send(server, {
    ...rest,
    path: path.replace(/[^\x21-\x7e]/g, ""),
    ...(chosen !== undefined && { token: chosen }),
  });
}

function mustBeSound(
  { status, headers: answered, text, json: parsed }: ApiResponse,
  { method: verb, path }: Generated,
  secret: string,
): void {
  const about = `${verb} ${path}: ${status} ${text}`;
  expect(allowed.has(status), about).to.equal(true);
  expect(answered["cache-control"], about).to.equal("no-store");
  const shown = JSON.stringify(answered) + (status === 200 ? "" : text);
  expect(shown, about).not.to.contain(secret);
  expect(shown, about).not.to.contain(canaries.passphrase);
  expect(shown, about).not.to.contain(canaries.value);
  if (verb === "HEAD") return;
  expect(answered["content-type"], about).to.match(/^application\/json/);
  expect(parsed, about).to.be.an("object").that.has.any.keys("ok", "code", "path", "entries", "initialized");
}

function exchangeRaw(server: TestServer, piece: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connectRaw(server);
    let received = "";
    // The server waits for the rest of an incomplete request; this client does not.
    const stop = setTimeout(() => socket.destroy(), 400);
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
    });
    socket.once("close", () => {
      clearTimeout(stop);
      resolve(received);
    });
    socket.once("secureConnect", () => socket.write(piece));
  });
}

function mustBeSoundRaw(text: string, piece: string): void {
  const about = `${JSON.stringify(piece)} got ${JSON.stringify(text)}`;
  if (text === "" || text.startsWith("HTTP/1.1 100 ")) return;
  const answers = text.split(/(?=HTTP\/1\.1 \d{3} )/);
  for (const answer of answers) {
    expect(answer, about).to.match(/^HTTP\/1\.1 (200|400|401|403|404|409|429) /);
    expect(answer, about).to.match(/content-type: application\/json/i);
    expect(() => JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4)), about).not.to.throw();
  }
}
