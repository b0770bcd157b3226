/** kill -9 at random moments of all kinds of changes: after each restart the vault is as a model says, and the audit log is whole. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AssertionError, expect } from "chai";
import type { Checkpoint, LogHead } from "../../src/audit/format.js";
import { judgeCheckpoints, verifyLog } from "../../src/audit/verify.js";
import { cleanUpMark, cleanUpTo, diskDirectory, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { copyTree } from "../../tools/rig/copy-tree.js";
import { needsPostgres } from "../../tools/rig/postgres.js";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { startTestServer, type TestServer } from "../../tools/rig/server.js";
import { closeConnections, mustCreateToken, mustInit, mustSucceed, send } from "../../tools/rig/test-client.js";
import { Random, runSeed } from "../support/random.js";
import { sharedStoreUrl, startSharedDatabase } from "../support/shared-servers.js";
import { allChanges, VaultModel } from "./vault-model.js";
import { manyPaths } from "./vault-parts.js";

/** Short in the normal suite; 400 and 50,000 in the long form. */
const kills = Number(process.env["STRONGROOM_KILLS"] ?? 2);
const acknowledgedChanges = Number(process.env["STRONGROOM_KILL_CHANGES"] ?? 100);
/** Kills of a server on a database. */
const sharedKills = Number(process.env["STRONGROOM_SHARED_KILLS"] ?? 1);
const tellEvery = 20;

/** Shares of lives that end in a forced init, and of those after which old secrets are in the trash. */
const killedInitShare = 0.2;
const agedShare = 0.5;

/** Requests that change what a vault shows: all of them in the long form. */
const shownKinds = [
  /^PATCH .v1.metadata/,
  /^POST .v1.trash/,
  /^DELETE .v1.tokens/,
  ...(kills < 100
    ? []
    : [
        ...[/^PUT .v1.secrets/, /^DELETE .v1.secrets/, /^POST .v1.batch/, /^PUT .v1.uses/],
        ...[/^POST .v1.untrash/, /^DELETE .v1.trash/, /^POST .v1.transit.*rotate/, /^POST .v1.tokens$/],
        ...[/^POST .v1.passphrase/, /^POST .v1.keys/, /^DELETE .v1.keys/],
      ]),
];

type Settings = Readonly<Record<string, string>>;

function start(settings: Settings): Promise<ServerProcess> {
  const more = { STRONGROOM_IDLE_TIMEOUT_MS: "0", STRONGROOM_SCRYPT_LOG_N: "14", STRONGROOM_KEEP_TRASH_DAYS: "1" };
  return startProcess([], { ...settings, ...more });
}

async function kill(server: ServerProcess): Promise<void> {
  server.child.kill("SIGKILL");
  await server.ended;
  closeConnections(server);
}

async function readAuditHead(server: ServerProcess): Promise<LogHead> {
  return mustSucceed(await send(server, { path: "/v1/audit?limit=1" }))["head"] as LogHead;
}

/** The audit log has no problem, and all that it had when the head was read. */
async function mustBeWhole(home: string, head: LogHead | null): Promise<void> {
  const { problems } = await verifyLog(join(home, "audit"), head);
  expect(problems).to.deep.equal([]);
}

/** The audit log's checkpoints are valid for the vault. */
async function mustBeJudgedValid(server: ServerProcess): Promise<void> {
  await readAuditHead(server);
  const log = await verifyLog(join(server.home, "audit"));
  const judge = async (checkpoints: readonly Checkpoint[]) => {
    const answer = await send(server, { method: "POST", path: "/v1/audit/verify", body: { checkpoints } });
    return mustSucceed(answer)["verdicts"] as "valid"[];
  };
  expect([...log.problems, ...(await judgeCheckpoints(log, judge)).problems]).to.deep.equal([]);
}

/** One life of a server, from its start to its end at a random moment after enough acknowledged changes. */
async function live(settings: Settings, model: VaultModel, changes: number, random: Random): Promise<void> {
  const mark = cleanUpMark();
  const server = await start(settings);
  if (model.lives++ === 0) await model.begin(server);
  else await model.inspect(server);
  await mustBeJudgedValid(server);
  const enough = model.acknowledged + changes;
  let isOver = false;
  const changing = model.change(server, random).finally(() => {
    isOver = true;
  });
  changing.catch(() => {}); // awaited below
  while (model.acknowledged < enough && !isOver) await sleep(1);
  model.wantsInit = random.chance(killedInitShare);
  const longestMs = model.wantsInit ? 200 : 30;
  while (model.wantsInit && !isOver) await sleep(1); // until it has begun
  await sleep(random.below(longestMs));
  const head = random.chance(0.5) ? await readAuditHead(server) : null;
  await kill(server);
  await changing;
  await mustBeWhole(server.home, head);
  await cleanUpTo(mark);
}

/** Only a vault whose batches are all in the tree has files that the test may change. */
async function rest(settings: Settings, model: VaultModel, random: Random): Promise<void> {
  const server = await start(settings);
  await model.inspect(server);
  server.child.kill("SIGTERM");
  await server.ended;
  model.age(server.home, random);
}

type Ordeal = { readonly kills: number; readonly changes: number; readonly settings: Settings; readonly ages: boolean };

async function mustSurvive({ kills: all, changes, settings, ages }: Ordeal): Promise<void> {
  const [random, model] = [new Random(runSeed), new VaultModel()];
  const home = { STRONGROOM_HOME: join(diskDirectory(), "home"), ...settings };
  try {
    for (let done = 0; done < all; done++) {
      const missing = Math.max(0, changes - model.acknowledged) / (all - done);
      await live(home, model, done === all - 1 ? missing : Math.round(2 * missing * random.next()), random);
      if (ages && random.chance(agedShare)) await rest(home, model, random);
      if (all > tellEvery && done % tellEvery === 0) tell(done, model);
    }
    const server = await start(home);
    await model.inspect(server);
    await model.finish(server);
  } catch (cause) {
    throw new Error(`STRONGROOM_SEED=${runSeed}, after ${model.lives} lives: ${String(cause)}`, { cause });
  }
  tell(all, model);
  expect(model.acknowledged).to.be.at.least(changes);
}

function tell(done: number, { acknowledged, inits }: VaultModel): void {
  process.stdout.write(
    `      ${done} kills, ${acknowledged} acknowledged changes, ${inits} forced inits: all as promised\n`,
  );
}

describe("kill -9 under all kinds of changes", function () {
  this.timeout(0);

  it(`${kills} kills of a server lose, damage or invent none of ${acknowledgedChanges} acknowledged changes`, () =>
    mustSurvive({ kills, changes: acknowledgedChanges, settings: {}, ages: true }));

  it("the check detects a vault that has lost its last change, of each kind", async () => {
    const [random, model] = [new Random(runSeed), new VaultModel({ ...allChanges, writers: 1, longest: 100 })];
    let server = await startTestServer();
    await model.begin(server);
    const restarted = async (vault: string) => {
      await server.stop();
      rmSync(server.vaultPath, { recursive: true });
      copyTree(vault, server.vaultPath);
      server = await startTestServer({ home: server.home });
    };
    const copied = () => {
      const copy = join(temporaryDirectory(), "vault");
      copyTree(server.vaultPath, copy);
      return copy;
    };
    for (const kind of shownKinds) {
      let before = "";
      await model.makeOne(server, kind, random, () => {
        before = copied();
      });
      const after = copied();
      await restarted(before);
      const isFound = await model.inspect(server).then(
        () => false,
        (error: unknown) => error instanceof AssertionError,
      );
      expect(isFound, String(kind)).to.equal(true);
      await restarted(after);
      await model.inspect(server);
    }
  });
});

/** Starts a server on a copy of the home, which has what a kill of the server would leave now. */
function startAsAfterKill({ home }: TestServer): Promise<TestServer> {
  const copy = join(temporaryDirectory(), "home");
  copyTree(home, copy);
  return startTestServer({ home: copy });
}

async function tokenState(server: TestServer, token: string): Promise<string> {
  const { status, json } = await send(server, { path: "/v1/tokens/self", token });
  return `${status} ${String(json["reason"])}`;
}

describe("kill -9 and client tokens", () => {
  it("tokens revoked by name or by a forced init are revoked after a kill, and lock no client out", async () => {
    const server = await startTestServer();
    await mustInit(server);
    const { token: kept } = await mustCreateToken(server, { name: "kept", ttlSeconds: 0, paths: manyPaths });
    const { token: revoked } = await mustCreateToken(server, { name: "revoked" });
    mustSucceed(await send(server, { method: "DELETE", path: "/v1/tokens/revoked" }));
    const next = await startAsAfterKill(server);
    expect([await tokenState(next, revoked), await tokenState(next, kept)]).to.deep.equal([
      "401 revoked",
      "200 undefined",
    ]);
    await mustInit(server, { passphrase: "another passphrase", force: true });
    const last = await startAsAfterKill(server);
    for (let n = 0; n < 12; n++) expect(await tokenState(last, kept)).to.equal("401 revoked");
    mustSucceed(await send(last, { path: "/v1/tokens/self" }));
  });
});

describe("kill -9 under all kinds of changes on a database", function () {
  this.timeout(0);
  before(function () {
    needsPostgres(this);
  });

  it(`${sharedKills} kills of a server on a database lose, damage or invent no acknowledged change`, async () => {
    const STRONGROOM_STORE = sharedStoreUrl(await startSharedDatabase());
    const changes = 100 * sharedKills;
    await mustSurvive({ kills: sharedKills, changes, settings: { STRONGROOM_STORE }, ages: false });
  });
});
