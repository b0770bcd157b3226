/** kill -9 at random moments under concurrent writes: after each restart every acknowledged write must be there. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { cleanUpMark, cleanUpTo, diskDirectory } from "../../tools/rig/clean-up.js";
import { needsPostgres } from "../../tools/rig/postgres.js";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { mustInit } from "../../tools/rig/test-client.js";
import { Random, runSeed } from "../support/random.js";
import { startSharedDatabase, storeOf } from "../support/shared-servers.js";
import { inspect } from "./inspect-restart.js";
import { forceInit, Subject, untilKilled, write } from "./writers.js";

const writers = 8;

/** Short in the normal suite; 200 and 50,000 in the long form. */
const kills = Number(process.env["STRONGROOM_KILLS"] ?? 2);
const acknowledgedWrites = Number(process.env["STRONGROOM_KILL_WRITES"] ?? 100);
/** Kills of a server on a database. */
const sharedKills = Number(process.env["STRONGROOM_SHARED_KILLS"] ?? 1);
const tellEvery = 20;
const killedInitShare = 0.2;

describe("kill -9 under load", function () {
  this.timeout(0);

  it(`${kills} times, over ${acknowledgedWrites} acknowledged writes: none is lost, damaged or invented`, () =>
    mustSurvive({ kills, acknowledgedWrites, settings: {} }));
});

describe("kill -9 under load of a server on a database", function () {
  this.timeout(0);
  before(function () {
    needsPostgres(this);
  });

  it(`${sharedKills} times: no acknowledged write is lost, damaged or invented`, async () => {
    const STRONGROOM_STORE = storeOf(await startSharedDatabase());
    await mustSurvive({ kills: sharedKills, acknowledgedWrites: 100 * sharedKills, settings: { STRONGROOM_STORE } });
  });
});

/** `settings`: further ones of the server. */
type Ordeal = {
  readonly kills: number;
  readonly acknowledgedWrites: number;
  readonly settings: Readonly<Record<string, string>>;
};

async function mustSurvive(ordeal: Ordeal): Promise<void> {
  const subject = new Subject();
  try {
    await killOverAndOver(subject, ordeal);
  } catch (cause) {
    throw new Error(`STRONGROOM_SEED=${runSeed}, after ${subject.kills} kills: ${String(cause)}`, { cause });
  }
  expect(subject).to.include({ kills: ordeal.kills });
  expect(subject.acknowledged).to.be.at.least(ordeal.acknowledgedWrites);
}

async function killOverAndOver(subject: Subject, ordeal: Ordeal): Promise<void> {
  const random = new Random(runSeed);
  const settings = { ...ordeal.settings, STRONGROOM_HOME: join(diskDirectory(), "home") };
  while (subject.kills < ordeal.kills) {
    await oneLife(settings, subject, random, ordeal);
    subject.kills++;
    if (ordeal.kills > tellEvery && subject.kills % tellEvery === 0) tell(subject);
  }
  await startedAndInspected(settings, subject);
}

/** Acknowledged writes until the next kill: random, with the wanted total over all kills. */
function writesBeforeKill(subject: Subject, random: Random, { kills, acknowledgedWrites }: Ordeal): number {
  const missing = Math.max(0, acknowledgedWrites - subject.acknowledged);
  const left = kills - subject.kills;
  return left === 1 ? missing : Math.round(2 * (missing / left) * random.next());
}

/** One round, from a start to a kill. */
async function oneLife(settings: Ordeal["settings"], subject: Subject, random: Random, ordeal: Ordeal): Promise<void> {
  const mark = cleanUpMark();
  const server = await startedAndInspected(settings, subject);
  const enough = subject.acknowledged + writesBeforeKill(subject, random, ordeal);
  const work = Array.from({ length: writers }, (_, n) => write(server, subject, n, new Random(random.below(2 ** 32))));
  await Promise.all([killAfter(enough, server, subject, random), ...work]);
  await cleanUpTo(mark);
}

/** At a random moment, sometimes in the middle of a forced init. */
async function killAfter(enough: number, server: ServerProcess, subject: Subject, random: Random): Promise<void> {
  while (subject.acknowledged < enough && !server.child.killed) await sleep(1);
  const initToo = random.chance(killedInitShare) && !subject.ledger.initUnderWay;
  const init = initToo ? untilKilled(() => forceInit(server, subject)) : null;
  await sleep(random.below(initToo ? 200 : 20));
  server.child.kill("SIGKILL");
  await server.ended;
  await init;
}

async function startedAndInspected(settings: Ordeal["settings"], subject: Subject): Promise<ServerProcess> {
  const all = { ...settings, STRONGROOM_IDLE_TIMEOUT_MS: "0", STRONGROOM_SCRYPT_LOG_N: "14" };
  const server = await startProcess([], all);
  if (subject.started) await inspect(server, subject);
  else await mustInit(server, { passphrase: subject.passphrase });
  subject.started = true;
  return server;
}

function tell({ kills, acknowledged, inits }: Subject): void {
  process.stdout.write(
    `      ${kills} kills, ${acknowledged} acknowledged writes, ${inits} forced inits: all as promised\n`,
  );
}
