/**
 * Mutants of the adapter: with any one of its steps left out, the judges of every request must find a difference from the
 * documents. So what a change of the adapter forgets is found.
 */
import { constants } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:tls";
import { expect } from "chai";
import * as adapter from "../../src/http/adapter.js";
import type { Endpoint } from "../../src/http/endpoint.js";
import { readPackageFile } from "../../src/manifest.js";
import { shared } from "../../tools/rig/clean-up.js";
import { takeViolations } from "../../tools/rig/contract-judge.js";
import { passphrase, startTestServer, uncached } from "../../tools/rig/server.js";
import { mustCreateToken, send } from "../../tools/rig/test-client.js";
import { failingFiles } from "../support/failing-files.js";
import { heldFiles } from "../support/held-files.js";
import { judgeEnds, judgeLateBodies } from "../support/request-ends.js";
import * as judges from "../support/request-judges.js";
import { beginBody, type Rig, startRig } from "../support/request-rig.js";
import { allRequests } from "../support/requests.js";

const files = { held: heldFiles(), failing: failingFiles() };

type Rigs = { readonly usual: Rig; readonly held: Rig; readonly full: Rig };
type Check = (rigs: Rigs) => Promise<readonly string[]>;

/** Requests of each kind: a few of them are enough to miss a step. */
const sample = allRequests.filter(({ at }) =>
  [
    ...["GET /v1/secrets/:path", "PUT /v1/secrets/:path", "GET /v1/audit", "POST /v1/tokens", "POST /v1/unlock"],
    ...["POST /v1/transit/encrypt/:name", "POST /v1/*/data/:path", "POST /v1/auth/approle/login", "GET /v1/status"],
    ...["GET /v1/sys/mounts", "POST /v1/*/config", "POST /v1/review"],
  ].includes(at),
);

/** `at`: the only row to judge; by default all of the sample. */
const on =
  (judge: judges.Judge, at?: string): Check =>
  ({ usual }) =>
    judge(usual, at === undefined ? sample : sample.filter((one) => one.at === at));

/** A TLS 1.2 connection with AES-GCM keeps a piece of what it decrypts. */
const keepsConnection: Check = async ({ usual: { server } }) => {
  const socket = connect({
    ...{ host: "127.0.0.1", port: server.port, servername: "localhost", ca: server.certificate },
    ...{ maxVersion: "TLSv1.2", ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256" },
    secureOptions: constants.SSL_OP_NO_TLSv1_3,
  });
  await once(socket, "secureConnect");
  const body = JSON.stringify({ passphrase });
  const head = `POST /v1/unlock HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.token}\r\n`;
  socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
  const [answer] = await once(socket, "data");
  socket.destroy();
  return /^connection: close/im.test(String(answer)) ? [] : ["the connection stays open"];
};

const servesPage: Check = async ({ usual: { server, clock } }) => {
  const { status } = await send(server, { path: "/review/", token: null });
  clock.advance(61_000);
  return status === 200 ? [] : [`the page: ${status}`];
};

/** Attempts that were all admitted before one has failed: only ten wrong credentials are told apart from right ones. */
async function limits({ usual }: Rigs, at: string, bodies: readonly object[]): Promise<readonly string[]> {
  const { server, clock } = usual;
  const row = allRequests.find((one) => one.at === at) ?? expect.fail(at);
  const begun = await Promise.all(bodies.map((body) => beginBody(usual, { ...row, body }, server.token)));
  const statuses: number[] = [];
  for (const attempt of begun) statuses.push((await attempt.sendBody()).status);
  clock.advance(400_000);
  return statuses.at(-1) === 429 ? [] : [`a right credential after twelve wrong ones: ${statuses.at(-1)}`];
}

const twelve = <T>(wrong: T) => Array.from({ length: 12 }, () => wrong);

const limitsAttempts: Check = (rigs) =>
  limits(rigs, "POST /v1/unlock", [...twelve({ passphrase: "wrong" }), { passphrase }]);

function limitsLogins(rigs: Rigs): Promise<readonly string[]> {
  const login = (secret: string) => ({ role_id: "root", secret_id: secret });
  return limits(rigs, "POST /v1/auth/approle/login", [...twelve(login("wrong")), login("{own}")]);
}

/** A client token whose record no unlock has checked yet. */
async function requiresGenuine(): Promise<readonly string[]> {
  const { server } = await startRig();
  const { token } = await mustCreateToken(server, { name: "auditor", can: ["audit"] });
  await server.stop();
  const { status } = await send(await startTestServer({ home: server.home }), { path: "/v1/audit", token });
  return status === 403 ? [] : [`the audit log for an unchecked token: ${status}`];
}

/** The bodies that the adapter's own process read are zeros once they were used. */
const wipesBodies: Check = async ({ usual: { server } }) => {
  const read: Uint8Array[] = [];
  const spy: (typeof adapter.arrival)[number] = (exchange) => {
    if (exchange.body !== null) read.push(exchange.body);
  };
  const steps = adapter.arrival as (typeof spy)[];
  steps.push(spy);
  try {
    await mustCreateToken(server, { name: `wiped-${Date.now()}`, can: ["get"] });
  } finally {
    steps.splice(steps.indexOf(spy), 1);
  }
  return read.length > 0 && read.every((body) => body.every((byte) => byte === 0)) ? [] : ["a body is not wiped"];
};

/** Requests of a token with limited paths are activity. */
const countsActivity: Check = async () => {
  const { server, clock, tokens } = await startRig({ idleTimeoutMs: 600_000 });
  for (let n = 0; n < 3; n++) {
    clock.advance(400_000);
    await send(server, { path: "/v1/secrets/app/a", token: tokens.get("in") ?? "" });
  }
  const { status } = await send(server, { path: "/v1/secrets/app/a" });
  return status === 200 ? [] : [`after reads of a token with paths: ${status}`];
};

/** Checks by the name of the step. */
const catching: Readonly<Record<string, Check>> = {
  refuseOtherSites: on(judges.judgeOthers),
  servePage: servesPage,
  refuseLockedOut: on(judges.judgeLockout),
  authenticate: on(judges.judgeUnlocked, "GET /v1/audit"),
  refuseHeaders: on(judges.judgeOthers),
  closeAfterPassphrase: keepsConnection,
  refuseLockedOutOfPassphrases: on(judges.judgeCounting),
  requireEndpoint: on(judges.judgeMethods),
  refuseWhileStopping: async () => judges.judgeStopping(await startRig(), sample),
  requireScopes: on(judges.judgeUnlocked, "PUT /v1/secrets/:path"),
  requireUnlocked: on(judges.judgeLocked, "GET /v1/secrets/:path"),
  requireAuditLog: ({ full }) => judges.judgeFullAudit(full, sample, files.failing),
  readSubject: on(judges.judgeOrder),
  authorizeSubject: on(judges.judgeOrder),
  readConditions: on(judges.judgeParameters),
  readQuery: on(judges.judgeParameters),
  readRequestBody: on(judges.judgeSamples),
  checkTokenAfterBody: on(judgeLateBodies),
  checkTokenInTurn: ({ held }) => judgeEnds(held, sample, files.held),
  refuseFurtherAttempts: limitsAttempts,
  checkTokenBeforeRead: ({ held }) => judgeEnds(held, sample, files.held),
  countLogin: on(judges.judgeCounting),
  countPassphrase: on(judges.judgeCounting),
  record: on(judges.judgeSamples),
  wipeBody: wipesBodies,
  delayIdleLock: countsActivity,
};

type Steps = readonly { readonly name: string }[];

/** Every list that the adapter exports. */
const lists = Object.values(adapter).filter((one) => Array.isArray(one)) as readonly Steps[];

/** Returns the names of the adapter's functions that refuse a request. */
function refusingFunctions(): readonly string[] {
  const functions = readPackageFile("src/http/adapter.ts")
    .split(/^(?:export )?(?:async )?function /m)
    .slice(1);
  const refusing = functions.filter((text) =>
    /\bthrow\b|\.check\(|[.\s](?:must|require|authorize)\w+(?:\?\.)?\(/.test(text),
  );
  return refusing.map((text) => /^\w+/.exec(text)?.[0] ?? "");
}

type Part = readonly [step: string, skipped: string, isSkipped: (endpoint: Endpoint) => boolean, check: Check];

/** Checks of a step that has several. */
const parts: readonly Part[] = [
  ["requireUnlocked", "the guard key", ({ guard }) => guard === "key", on(judges.judgeLocked, "POST /v1/review")],
  [
    "requireUnlocked",
    "the guard unlocked",
    ({ guard }) => guard === "unlocked",
    on(judges.judgeLocked, "POST /v1/*/data/:path"),
  ],
  [
    "requireUnlocked",
    "the guard background",
    ({ guard }) => guard === "background",
    on(judges.judgeLocked, "POST /v1/tokens"),
  ],
  ["requireUnlocked", "the guard genuine", ({ guard }) => guard === "genuine", requiresGenuine],
  [
    "requireAuditLog",
    "the guard background",
    ({ guard }) => guard === "background",
    catching["requireAuditLog"] as Check,
  ],
  ["refuseLockedOut", "logins", ({ scope }) => scope === "login", on(judges.judgeLockout)],
  ["readConditions", "those of changes", ({ conditional }) => conditional === "change", on(judges.judgeParameters)],
  ["readConditions", "those of reads", ({ conditional }) => conditional === "read", on(judges.judgeParameters)],
  ["refuseFurtherAttempts", "logins", ({ scope }) => scope === "login", limitsLogins],
];

describe("mutants of the adapter", () => {
  const rigs = shared(async () => ({
    usual: await startRig(),
    held: await startRig({ files: files.held.files, ...uncached }),
    full: await startRig({ files: files.failing.files, auditOnFailure: "deny" }),
  }));

  it("every step of the adapter has a judge that finds its absence", () => {
    expect(lists.flatMap((list) => list.map(({ name }) => name)).sort()).to.deep.equal(Object.keys(catching).sort());
  });

  it("every function of the adapter that refuses a request is a step", () => {
    const steps = lists.flatMap((list) => list.map(({ name }) => name));
    expect(refusingFunctions().filter((name) => !steps.includes(name))).to.deep.equal([]);
    expect(refusingFunctions()).to.include.members(["requireScopes", "checkTokenInTurn", "countPassphrase"]);
  });

  /** The mutant must be found, and nothing once the steps are whole again. */
  async function mustBeCaught(check: Check, list: Steps[number][], at: number, ...mutant: Steps): Promise<void> {
    const [step] = list.splice(at, 1, ...mutant);
    let found: readonly string[];
    try {
      found = await check(rigs()).catch((error: unknown) => [String(error)]);
    } finally {
      list.splice(at, mutant.length, step as Steps[number]);
    }
    expect(found).not.to.deep.equal([]);
    expect(await check(rigs())).to.deep.equal([]);
    takeViolations(); // the mutant's
  }

  for (const [name, skipped, isSkipped, check] of parts)
    it(`an adapter without ${name} for ${skipped} is caught`, () => {
      const list = lists.find((one) => one.some((step) => step.name === name)) as Steps[number][];
      const at = list.findIndex((step) => step.name === name);
      const step = list[at] as (exchange: adapter.Exchange) => unknown;
      const mutant = (exchange: adapter.Exchange) => (isSkipped(exchange.endpoint) ? undefined : step(exchange));
      return mustBeCaught(check, list, at, mutant);
    });

  for (const list of lists)
    for (const step of [...list])
      it(`an adapter without ${step.name} is caught, and nothing is found with it`, async () => {
        const steps = list as Steps[number][];
        await mustBeCaught(catching[step.name] as Check, steps, steps.indexOf(step));
      });
});
