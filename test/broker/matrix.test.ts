/** Which requests get which credential: bindings × hosts × methods × paths against an oracle, the upstreams as witness. */
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

/** Requests of the 1,200; all in the long form. */
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

const sessions: readonly (readonly string[])[] = [["m/"], ["n/"], ["m/v1", "n/suffix"], []];
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
  readonly paths: readonly string[];
  readonly place: Place;
  readonly method: string;
  readonly target: string;
};

const cases: readonly Case[] = sessions.flatMap((paths) =>
  places.flatMap((place) => methods.flatMap((method) => targets.map((target) => ({ paths, place, method, target })))),
);

/** The same ones in every run, spread over the whole: 343 is prime to the number of cases. */
const chosen = cases
  .map((one, i) => ({ one, at: (i * 343) % cases.length }))
  .sort((x, y) => x.at - y.at)
  .slice(0, most)
  .map(({ one }) => one);

/** Written from the contract: the one secret whose binding covers the request, or null. */
function oracle(one: Case): string | null {
  const covering = rows.filter((row) => row.place === one.place && isOf(one.paths, row) && covers(row, one));
  return covering.length === 1 ? (covering[0]?.secret ?? null) : null;
}

function isOf(session: readonly string[], { secret }: Row): boolean {
  return (
    session.length === 0 || session.some((scope) => (scope.endsWith("/") ? secret.startsWith(scope) : secret === scope))
  );
}

function covers(row: Row, { method, target }: Case): boolean {
  const [path = ""] = target.split("?");
  const isPlain = !/%(2e|2f|5c|25|00)|[\\;]|\/\/|\/\.\.?(\/|$)/i.test(path);
  const isPath = row.paths === null || (isPlain && row.paths.some(([, expression]) => expression.test(path)));
  return isPath && (row.methods === null || row.methods.includes(method));
}

describe("the matrix of bindings, hosts, methods and paths", function () {
  this.timeout(0);
  type Rig = {
    readonly server: TestServer;
    readonly a: Upstream;
    readonly b: Upstream;
    readonly agents: readonly Agent[];
  };
  const rig = shared(async (): Promise<Rig> => {
    const [a, b] = [await startUpstream(["localhost", "127.0.0.1"]), await startUpstream()];
    const server = await startWithBroker([a, b]);
    for (const { secret, place, methods: some, paths } of rows) {
      await mustPut(server, secret, { value: secretValue(secret) });
      const [host, port] = hostOf(place, a, b);
      const limits = { ...(some && { methods: some }), ...(paths && { paths: paths.map(([pattern]) => pattern) }) };
      await bind(server, secret, { host, port, private: true, ...limits });
    }
    const agents: Agent[] = [];
    for (const paths of sessions) agents.push(await startAgent(server, { paths }));
    return { server, a, b, agents };
  });

  it(`gives ${chosen.length} requests the credential that the oracle says, or none`, async () => {
    for (const one of chosen) await mustAgree(one);
  });

  async function mustAgree(one: Case): Promise<void> {
    const { a, b, agents } = rig();
    const [host, port] = hostOf(one.place, a, b);
    const [agent] = agents.filter((_, i) => sessions[i] === one.paths);
    if (agent === undefined) throw new Error("no session has these paths");
    for (const { seen } of [a, b]) seen.length = 0;
    const request = `${one.method} ${one.target} HTTP/1.1\r\nHost: ${host}:${port}\r\nConnection: close\r\n\r\n`;
    const response = await sendThrough(agent, `${host}:${port}`, request);
    const found = [...a.seen, ...b.seen].map(({ headers }) => headers["authorization"]);
    const secret = oracle(one);
    const what = `${JSON.stringify(one)}: ${response.split("\r\n", 1)[0]}`;
    expect(found, what).to.deep.equal(secret === null ? [] : [`Bearer ${secretValue(secret)}`]);
    expect(response, what).to.match(secret === null ? /^HTTP\/1\.1 403 / : /^HTTP\/1\.1 200 /);
    const [seen] = (one.place === "b by name" ? b : a).seen;
    if (secret !== null) expect(seen, what).to.include({ method: one.method, url: one.target });
  }

  it("has cases of both kinds in it", () => {
    const injected = chosen.filter((one) => oracle(one) !== null).length;
    expect(injected)
      .to.be.above(chosen.length / 10)
      .and.below((chosen.length * 9) / 10);
  });
});

function hostOf(place: Place, a: Upstream, b: Upstream): readonly [host: string, port: number] {
  if (place === "b by name") return ["localhost", b.port];
  return [place === "a by name" ? "localhost" : "127.0.0.1", a.port];
}

function secretValue(secret: string): string {
  return `value-of-${secret.replace("/", "-")}-5d1e`;
}
