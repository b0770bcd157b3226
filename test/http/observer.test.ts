/** docs/inside/architecture.md, Observers: what they receive of requests and of the vault. */
import { once } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect } from "chai";
import type { FinishedRequest, VaultEvent } from "../../src/observer.js";
import { passphrase, startTestServer, type TestOptions, type TestServer, uncached } from "../../tools/rig/server.js";
import {
  connectRaw,
  mustCreateToken,
  mustInit,
  mustLock,
  mustPut,
  mustStatus,
  mustUnlock,
  type Send,
  send,
} from "../../tools/rig/test-client.js";
import { crashKeyWorkers } from "../support/crash-key-worker.js";
import { blobFile, damage } from "../support/damage.js";
import { FakeClock } from "../support/manual-clock.js";

type Observed = { readonly server: TestServer; readonly requests: FinishedRequest[]; readonly events: VaultEvent[] };

async function startObserved(options: TestOptions = {}): Promise<Observed> {
  const requests: FinishedRequest[] = [];
  const events: VaultEvent[] = [];
  const observer = {
    requestFinished: (request: FinishedRequest) => requests.push(request),
    vaultEvent: (event: VaultEvent) => events.push(event),
  };
  return { server: await startTestServer({ ...options, observer }), requests, events };
}

const batch = { method: "POST", path: "/v1/batch" };
const operations = [{ get: "app/a" }, { copy: "app/a", to: "app/c" }, { put: "app/d", value: "w" }];
const planned = [
  { kind: "get", path: "app/a" },
  { kind: "copy", path: "app/a", to: "app/c" },
  { kind: "put", path: "app/d" },
];
const root = { caller: "root" };

/** A request, and the members of its report that are not null, without address and duration. */
const rows: readonly (readonly [name: string, Send, object])[] = [
  ["a status", { path: "/v1/status?x", token: null }, { route: "/v1/status", status: 200 }],
  [
    "a wrong token",
    { path: "/v1/secrets/app/a", token: "wrong" },
    { route: "/v1/secrets/:path", status: 401, code: "UNAUTHORIZED" },
  ],
  ["an unknown route", { path: "/v2/a" }, { ...root, route: "unknown", status: 404, code: "NOT_FOUND" }],
  [
    "a get of a path with an escape",
    { path: "/v1/secrets/app/%61" },
    { ...root, route: "/v1/secrets/:path", status: 200, path: "app/a", etag: "tag" },
  ],
  [
    "a put with a condition that does not hold",
    { method: "PUT", path: "/v1/secrets/app/a", headers: { "if-none-match": "*" }, body: { value: "w" } },
    { ...root, route: "/v1/secrets/:path", status: 412, code: "PRECONDITION_FAILED", path: "app/a" },
  ],
  [
    "an invalid path",
    { path: "/v1/secrets/a//b" },
    { ...root, route: "/v1/secrets/:path", status: 400, code: "BAD_REQUEST" },
  ],
  ["versions", { path: "/v1/versions/app/a" }, { ...root, route: "/v1/versions/:path", status: 200, path: "app/a" }],
  [
    "a list",
    { path: "/v1/secrets?prefix=app/&limit=1" },
    { ...root, route: "/v1/secrets", status: 200, prefix: "app/", count: 1 },
  ],
  ["a batch", { ...batch, body: { operations } }, { ...root, route: "/v1/batch", status: 200, operations: planned }],
];

describe("observers", () => {
  it("an observer receives each request once, with what is known of it", async () => {
    const { server, requests } = await startObserved();
    await mustInit(server);
    await mustPut(server, "app/a", "v");
    await mustPut(server, "app/b", "v");
    for (const [name, request, expected] of rows) {
      requests.length = 0;
      const { headers } = await send(server, request);
      expect(requests, name).to.have.lengthOf(1);
      const { address, durationMs, ...told } = requests[0] as FinishedRequest;
      expect(address).to.equal("127.0.0.1");
      expect(durationMs).to.be.above(0);
      const known = Object.fromEntries(Object.entries(told).filter(([, value]) => value !== null));
      const etag = "etag" in expected && { etag: headers.etag?.slice(1, -1) };
      expect(known, name).to.deep.equal({ method: request.method ?? "GET", ...expected, ...etag });
    }
  });

  it("an observer receives a request whose client disconnects early, with status 0", async () => {
    const { server, requests } = await startObserved();
    await mustInit(server);
    requests.length = 0;
    const socket = connectRaw(server);
    await once(socket, "secureConnect");
    const head = `PUT /v1/secrets/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.token}\r\n`;
    socket.end(`${head}Content-Length: 100\r\n\r\n{`);
    await once(socket.resume(), "close");
    while (requests.length === 0) await nextTurn();
    expect(requests[0]).to.include({
      route: "/v1/secrets/:path",
      status: 0,
      code: null,
      path: "a",
      address: "127.0.0.1",
    });
  });

  it("an observer receives the etag of a 304", async () => {
    const { server, requests } = await startObserved();
    await mustInit(server);
    await mustPut(server, "app/a", "v");
    const { headers } = await send(server, { path: "/v1/secrets/app/a" });
    await send(server, { path: "/v1/secrets/app/a", headers: { "if-none-match": headers.etag ?? "" } });
    expect(requests.at(-1)).to.include({ status: 304, path: "app/a", etag: headers.etag?.slice(1, -1) });
  });

  it("an observer receives the name of a client token, and the id of a failed request", async () => {
    const { server, requests } = await startObserved(uncached);
    await mustInit(server);
    const { token } = await mustCreateToken(server, { name: "reader", can: ["get"], paths: ["app/"] });
    await send(server, { path: "/v1/secrets/other", token });
    expect(requests.at(-1)).to.include({ caller: "reader", status: 403, code: "FORBIDDEN", path: "other" });
    await mustPut(server, "damaged", "v");
    damage(blobFile(server, "damaged"), new Uint8Array(10));
    const { json } = await send(server, { path: "/v1/secrets/damaged" });
    expect(requests.at(-1)).to.include({
      requestId: json["requestId"],
      status: 500,
      code: "INTEGRITY",
      caller: "root",
    });
  });

  it("an observer receives the vault's events in order, with each lock's reason", async () => {
    const clock = new FakeClock();
    const { server, events } = await startObserved({ clock, idleTimeoutMs: 60_000 });
    await mustInit(server);
    await mustLock(server);
    await mustLock(server);
    await send(server, { method: "POST", path: "/v1/unlock", body: { passphrase: "wrong" } });
    await mustUnlock(server);
    clock.advance(60_000);
    await mustUnlock(server);
    await crashKeyWorkers();
    expect((await mustStatus(server))["locked"]).to.equal(true);
    await mustUnlock(server);
    await server.stop();
    const told = events.map((event) => `${event.event}${"reason" in event ? ` ${event.reason}` : ""}`);
    expect(told.join(", ")).to.equal(
      "start, init, lock request, unlock-failed, failure, unlock, lock idle, unlock, lock crash, unlock, stop, lock shutdown",
    );
    expect(events.map(({ at }) => at)).to.deep.equal([...events.map(({ at }) => at)].sort());
  });

  it("an observer receives failures with credential and address, and the lockout that the tenth begins", async () => {
    const { server, events } = await startObserved();
    for (let n = 0; n < 11; n++) await send(server, { path: "/v1/secrets", token: "wrong" });
    const of = (name: string) => events.filter(({ event }) => event === name);
    expect(of("failure")).to.have.lengthOf(10);
    expect(of("lockout")).to.have.lengthOf(1);
    expect(of("lockout")[0]).to.include({ credential: "token", address: "127.0.0.1" });
  });

  it("an observer that throws fails no request, and is logged", async () => {
    const requestFinished = () => {
      throw new Error(passphrase);
    };
    const server = await startTestServer({ observer: { requestFinished } });
    await mustInit(server);
    expect(server.logged()).to.contain('"observer-failed"').and.not.contain(passphrase);
  });
});
