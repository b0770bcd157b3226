/** HEAD wherever GET is, on both ports: the same status, headers, audit event and report, without a body. */
import { expect } from "chai";
import { endpoints } from "../../src/http/endpoints.js";
import type { FinishedRequest } from "../../src/observer.js";
import { shareTestServer, startTestServer } from "../../tools/rig/server.js";
import {
  exchangeRaw,
  mustCreateToken,
  mustInit,
  mustLock,
  mustPut,
  mustSucceed,
  mustUnlock,
  type Send,
  send,
} from "../../tools/rig/test-client.js";
import { vault, withPort } from "../../tools/rig/vault-client.js";
import { FakeClock } from "../support/manual-clock.js";

type Answer = Pick<Awaited<ReturnType<typeof send>>, "status" | "headers" | "text">;

/** Headers that differ between two requests, and the length of bodies that do. */
function comparable({ headers, status }: Answer, isFixed: boolean): object {
  const { date: _date, "content-length": length, "transfer-encoding": _encoding, ...rest } = headers;
  return { status, headers: rest, ...(isFixed && { length }) };
}

/** Paths of rows with a parameter; every other one is `app/a`. */
const parameters: Readonly<Record<string, string>> = { ":name": "app/key" };

const native = endpoints.flatMap(({ at }) => {
  const [, path = "", query] = /^GET ([^?]*)(?:\?(.*))?$/.exec(at) ?? [];
  if (path === "") return [];
  const value = query === "version" ? "?version=1" : query === undefined ? "" : `?${query}=true`;
  return [path.replace(/:\w+/, (name) => parameters[name] ?? "app/a") + value];
});

/** Paths whose bodies have times, counts or other figures of the moment. */
const changing = /metrics|status|review|audit/;

const refusals: readonly (readonly [string, Send])[] = [
  ["no token", { path: "/v1/secrets/app/a", token: null }],
  ["no such endpoint", { path: "/v1/no-such" }],
  ["an endpoint of another method", { path: "/v1/unlock" }],
  ["a missing secret", { path: "/v1/secrets/missing" }],
  ["an invalid path", { path: "/v1/secrets/a//b" }],
  ["another site", { path: "/v1/secrets/app/a", headers: { origin: "https://example.com" } }],
];

describe("the method HEAD", () => {
  const reports: FinishedRequest[] = [];
  const observer = { requestFinished: (report: FinishedRequest) => reports.push(report), vaultEvent: () => {} };
  const server = shareTestServer(
    { vaultPort: 0, reviewPage: true, observer, clock: new FakeClock() },
    async (fresh) => {
      await mustInit(fresh);
      await mustPut(fresh, "app/a", "v");
      mustSucceed(await send(fresh, { method: "POST", path: "/v1/transit/keys/app/key" }));
    },
  );
  const both = async (sent: Send): Promise<readonly [get: Answer, head: Answer]> => [
    await send(server(), sent),
    await send(server(), { ...sent, method: "HEAD" }),
  ];

  it("HEAD /v1/vitals begins no stream", async () => {
    const { status, headers, text } = await send(server(), { method: "HEAD", path: "/v1/vitals" });
    expect([status, headers["content-type"], text]).to.deep.equal([200, "application/x-ndjson", ""]);
  });

  for (const path of native.filter((one) => one !== "/v1/vitals")) {
    it(`HEAD ${path} has the status and the headers of GET, and no body`, async () => {
      const [get, head] = await both({ path });
      const isFixed = !changing.test(path);
      expect(comparable(head, isFixed)).to.deep.equal(comparable(get, isFixed));
      expect(head.text).to.equal("");
    });
  }

  for (const [name, sent] of refusals) {
    it(`HEAD is refused as GET is, without a body: ${name}`, async () => {
      const [get, head] = await both(sent);
      expect(comparable(head, true)).to.deep.equal(comparable(get, true));
      expect(head.text).to.equal("");
    });
  }

  it("HEAD returns 304 where GET does, and requires the scopes of GET", async () => {
    const { headers } = await send(server(), { path: "/v1/secrets/app/a" });
    const unless = { "if-none-match": headers.etag ?? "" };
    const [get, head] = await both({ path: "/v1/secrets/app/a", headers: unless });
    expect([get.status, head.status, head.headers.etag]).to.deep.equal([304, 304, headers.etag]);
    const { token } = await mustCreateToken(server(), { name: "lister", can: ["list"] });
    const refused = await both({ path: "/v1/secrets/app/a", token });
    expect(refused.map(({ status }) => status)).to.deep.equal([403, 403]);
  });

  it("HEAD is recorded and reported as the GET", async () => {
    const audited = async () => {
      const { json } = await send(server(), { path: "/v1/audit?limit=1000" });
      return json["records"] as readonly { readonly event: string; readonly path?: string; readonly seq: number }[];
    };
    const before = (await audited()).length;
    for (const path of ["/v1/secrets/app/a", "/v1/secrets?prefix=app/", "/v1/versions/app/a?version=1"]) {
      reports.length = 0;
      await both({ path });
      const [get, head] = reports.map(({ durationMs: _, ...report }) => report);
      expect(head).to.deep.equal(get);
    }
    const told = (await audited()).slice(before).map(({ seq: _, ...record }) => record);
    expect(told.map(({ event }) => event)).to.deep.equal(["get", "get", "list", "list", "get-version", "get-version"]);
    for (const at of [0, 2, 4]) expect(told[at + 1]).to.deep.equal(told[at]);
  });

  it("HEAD of the review page returns the headers of GET", async () => {
    const ask = (method: string) => `${method} /review/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
    const answers = ["GET", "HEAD"].map((method) => exchangeRaw(server(), ask(method)));
    const [get = "", head = ""] = (await Promise.all(answers)).map((text) => text.replace(/^Date:.*\r\n/m, ""));
    expect(head).to.equal(get.slice(0, get.indexOf("\r\n\r\n") + 4));
  });

  it("HEAD leaves the connection usable for the next request", async () => {
    const head = `HEAD /v1/secrets/app/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server().token}\r\n\r\n`;
    const status = "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    const bytes = await exchangeRaw(server(), head + head + status);
    const heads = bytes.split("HTTP/1.1 200 OK\r\n").slice(1);
    expect(heads).to.have.lengthOf(3);
    for (const each of heads.slice(0, 2))
      expect(each)
        .to.match(/\r\n\r\n$/)
        .and.not.contain('"v"');
    expect(heads[2]).to.match(/\r\n\r\n\{.*\}$/s);
  });

  it("HEAD of the status says without a token whether the vault is unlocked", async () => {
    const path = "/v1/status?require=unlocked";
    await mustLock(server());
    expect((await both({ path, token: null })).map(({ status }) => status)).to.deep.equal([503, 503]);
    await mustUnlock(server());
    expect((await both({ path, token: null })).map(({ status }) => status)).to.deep.equal([200, 200]);
  });

  const vaultPaths = [
    ...["sys/health", "sys/seal-status", "sys/leader", "sys/init", "sys/mounts", "sys/mounts/secret/tune"],
    ...["sys/internal/ui/mounts", "sys/internal/ui/mounts/secret", "secret/data/app/a", "secret/metadata/app/a"],
    ...["secret/subkeys/app/a", "secret/config", "secret/metadata?list=true", "auth/token/lookup-self"],
    ...["transit/keys/app", "secret/data/missing", "database/creds/x", "sys/unseal"],
  ];
  it("HEAD works on the port for Vault's clients wherever GET does", async () => {
    const port = withPort(server());
    for (const path of vaultPaths) {
      const get = await vault(port, "GET", path);
      const head = await vault(port, "HEAD", path);
      expect(comparable(head, true), path).to.deep.equal(comparable(get, true));
      expect(head.text, path).to.equal("");
    }
  });

  it("HEAD without a token never locks a client out where GET would not", async () => {
    const fresh = await startTestServer({ clock: new FakeClock() });
    for (let n = 0; n < 12; n++)
      expect((await send(fresh, { method: "HEAD", path: "/v1/status", token: null })).status).to.equal(200);
    mustSucceed(await send(fresh, { method: "POST", path: "/v1/lock" }));
  });
});
