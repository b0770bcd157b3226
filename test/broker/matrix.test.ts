/** Which requests get which credential: kinds × bindings × hosts × methods × paths against an oracle, the upstreams as witness. */
import { generateKeyPairSync } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { expect } from "chai";
import {
  type Agent,
  bind,
  sendThrough,
  startAgent,
  startUpstream,
  startWithBroker,
  type Upstream,
} from "../../tools/rig/broker-rig.js";
import { shared } from "../../tools/rig/clean-up.js";
import type { TestServer } from "../../tools/rig/server.js";
import { mustPut } from "../../tools/rig/test-client.js";

/** Requests of the 4,800; all in the long form. */
const most = Number(process.env["STRONGROOM_BROKER_MATRIX"] ?? 200);

/** `place`: an upstream and the name by which it is reached. `paths`: as text and as the oracle's expression. */
type Row = {
  readonly secret: string;
  readonly place: Place;
  readonly methods: readonly string[] | null;
  readonly paths: readonly (readonly [pattern: string, expression: RegExp])[] | null;
};
type Place = "a by name" | "a by address" | "b by name";

const places: readonly Place[] = ["a by name", "a by address", "b by name"];

const rows: readonly Row[] = [
  { secret: "m/all", place: "a by name", methods: null, paths: null },
  { secret: "m/read", place: "a by address", methods: ["GET", "HEAD"], paths: null },
  { secret: "m/v1", place: "b by name", methods: null, paths: [["/v1/**", /^\/v1\/.*$/]] },
  {
    secret: "n/segment",
    place: "a by name",
    methods: ["POST"],
    paths: [
      ["/v1/*/end", /^\/v1\/[^/]*\/end$/],
      ["/v2", /^\/v2$/],
    ],
  },
  { secret: "n/suffix", place: "b by name", methods: ["GET"], paths: [["/**.json", /^\/.*\.json$/]] },
  { secret: "n/none", place: "a by address", methods: ["PURGE"], paths: [["/never", /^\/never$/]] },
];

const kinds = ["stored", "githubApp", "oauth", "sigv4"] as const;
type Kind = (typeof kinds)[number];

/** Paths of a session below its kind. */
const sessions: readonly (readonly string[])[] = [["m/"], ["n/"], ["m/v1", "n/suffix"], [""]];
const methods = ["GET", "HEAD", "POST", "DELETE", "PURGE"];
const targets = [
  "/",
  "/v1",
  "/v1/",
  "/v1/x",
  "/v1/x/end",
  "/v1/x/y/end",
  "/v2",
  "/v2?a=/v1/",
  "/v1/a.json",
  "/v1/../v2",
  "/v1/%2e%2e/v2",
  "/v1/x%2Fend",
  "/v1//end",
  "/v1/x;y/end",
  "/v2%00",
  "/V2",
  "/v1/x\\..\\end",
  "/v1/.",
  "/.json",
  "/v1/%252e%252e/a.json",
];

type Case = {
  readonly kind: Kind;
  readonly paths: readonly string[];
  readonly place: Place;
  readonly method: string;
  readonly target: string;
};

const cases: readonly Case[] = kinds.flatMap((kind) =>
  sessions.flatMap((paths) =>
    places.flatMap((place) =>
      methods.flatMap((method) => targets.map((target) => ({ kind, paths, place, method, target }))),
    ),
  ),
);

/** The same ones in every run, spread over the whole: 343 is prime to the number of cases. */
const chosen = cases
  .map((one, i) => ({ one, at: (i * 343) % cases.length }))
  .sort((x, y) => x.at - y.at)
  .slice(0, most)
  .map(({ one }) => one);

/** Written from the contract: the one secret whose binding covers the request, or null. */
function oracle(one: Case): string | null {
  const covering = rows.filter((row) => row.place === one.place && isInSession(one.paths, row) && covers(row, one));
  return covering.length === 1 ? (covering[0]?.secret ?? null) : null;
}

function isInSession(session: readonly string[], { secret }: Row): boolean {
  return session.some((scope) => (/^$|\/$/.test(scope) ? secret.startsWith(scope) : secret === scope));
}

function covers(row: Row, { method, target }: Case): boolean {
  const [path = ""] = target.split("?");
  const isPlain = !/%(2e|2f|5c|25|00)|[\\;]|\/\/|\/\.\.?(\/|$)/i.test(path);
  const isPath = row.paths === null || (isPlain && row.paths.some(([, expression]) => expression.test(path)));
  return isPath && (row.methods === null || row.methods.includes(method));
}

describe("the matrix of bindings and requests", function () {
  this.timeout(0);
  type Rig = {
    readonly server: TestServer;
    readonly a: Upstream;
    readonly b: Upstream;
    readonly agents: ReadonlyMap<string, Agent>;
  };
  const rig = shared(async (): Promise<Rig> => {
    const [a, b] = [await startUpstream(["localhost", "127.0.0.1"], respond), await startUpstream()];
    const server = await startWithBroker([a, b]);
    const agents = new Map<string, Agent>();
    for (const kind of kinds) {
      for (const { secret, place, methods: some, paths } of rows) {
        const { value, ...credential } = credentials[kind](secretName(secret), `https://localhost:${a.port}`);
        await mustPut(server, `${kind}/${secret}`, { value });
        const [host, port] = resolvePlace(place, a, b);
        const limits = { ...(some && { methods: some }), ...(paths && { paths: paths.map(([pattern]) => pattern) }) };
        await bind(server, `${kind}/${secret}`, { host, port, private: true, ...limits, ...credential });
      }
      for (const paths of sessions) {
        const scopes = paths.map((scope) => `${kind}/${scope}`);
        agents.set(`${kind} ${paths.join()}`, await startAgent(server, { paths: scopes }));
      }
    }
    return { server, a, b, agents };
  });

  it(`${chosen.length} requests get the credential that the oracle says, or none`, async () => {
    for (const one of chosen) await mustAgree(one);
  });

  async function mustAgree(one: Case): Promise<void> {
    const { a, b, agents } = rig();
    const [host, port] = resolvePlace(one.place, a, b);
    const agent = agents.get(`${one.kind} ${one.paths.join()}`);
    if (agent === undefined) throw new Error("no session has these paths");
    for (const { seen } of [a, b]) seen.length = 0;
    const request = `${one.method} ${one.target} HTTP/1.1\r\nHost: ${host}:${port}\r\nConnection: close\r\n\r\n`;
    const response = await sendThrough(agent, `${host}:${port}`, request);
    const seen = [...a.seen, ...b.seen].filter(({ url }) => !url.startsWith(endpoints));
    const found = seen.map(({ headers }) => shownCredential(headers["authorization"]));
    const secret = oracle(one);
    const what = `${JSON.stringify(one)}: ${response.split("\r\n", 1)[0]}`;
    expect(found, what).to.deep.equal(secret === null ? [] : [sentCredential(one.kind, secretName(secret))]);
    expect(response, what).to.match(secret === null ? /^HTTP\/1\.1 403 / : /^HTTP\/1\.1 200 /);
    const [sent] = (one.place === "b by name" ? b : a).seen.filter(({ url }) => !url.startsWith(endpoints));
    if (secret !== null) expect(sent, what).to.include({ method: one.method, url: one.target });
  }

  it("the matrix has requests with and without a credential", () => {
    const injected = chosen.filter((one) => oracle(one) !== null).length;
    expect(injected)
      .to.be.above(chosen.length / 10)
      .and.below((chosen.length * 9) / 10);
  });
});

function resolvePlace(place: Place, a: Upstream, b: Upstream): readonly [host: string, port: number] {
  if (place === "b by name") return ["localhost", b.port];
  return [place === "a by name" ? "localhost" : "127.0.0.1", a.port];
}

/** Beginning of the paths of token endpoints, which no request of the matrix has. */
const endpoints = "/endpoint/";

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();

/** Value and binding of a secret with this name, whose tokens are issued at this origin. */
const credentials: Readonly<Record<Kind, (name: string, origin: string) => { readonly value: string } & object>> = {
  stored: (name) => ({ value: name }),
  githubApp: (name, origin) => ({
    value: pem,
    githubApp: { appId: "1", installation: name, api: `${origin}${endpoints}github` },
  }),
  oauth: (name, origin) => ({
    value: '{"refreshToken":"r"}',
    oauth: { tokenUrl: `${origin}${endpoints}${name}`, clientId: "client" },
  }),
  sigv4: (name) => ({
    value: JSON.stringify({ accessKeyId: name, secretAccessKey: "key" }),
    sigv4: { service: "s3", region: "us-east-1" },
  }),
};

/** Issues the name in the endpoint's path as the token; answers everything else. */
function respond(req: IncomingMessage, res: ServerResponse): void {
  const url = req.url ?? "";
  req.resume();
  if (!url.startsWith(endpoints)) return void res.end("done\n");
  const [, installation] = /installations\/([^/]+)/.exec(url) ?? [];
  const token = installation ?? url.slice(endpoints.length);
  res.writeHead(installation === undefined ? 200 : 201, { "content-type": "application/json" });
  res.end(JSON.stringify({ token, access_token: token, token_type: "bearer", expires_at: "2999-01-01T00:00:00Z" }));
}

function sentCredential(kind: Kind, name: string): string {
  return kind === "sigv4" ? `AWS4-HMAC-SHA256 Credential=${name}` : `Bearer ${name}`;
}

/** The access key alone of a signature. */
function shownCredential(header: string | string[] | undefined): string {
  return String(header).replace(/^(AWS4-HMAC-SHA256 Credential=[^/]*).*/, "$1");
}

function secretName(secret: string): string {
  return `name-of-${secret.replace("/", "-")}-5d1e`;
}
