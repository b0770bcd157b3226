/** kill -9 and power cuts at random moments of changes of the trash, its sweep, single versions and transit keys. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { diskDirectory } from "../../tools/rig/clean-up.js";
import { skipFor } from "../../tools/rig/needs.js";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { closeConnections } from "../../tools/rig/test-client.js";
import { Random, runSeed } from "../support/random.js";
import { BesideSubject } from "./beside-subject.js";
import { Disk, whyNoDisk } from "./power-cut-disk.js";

/** Short in the normal suite; 200 and 40 in the long form. */
const kills = Number(process.env["STRONGROOM_TRASH_KILLS"] ?? 1);
const cuts = Number(process.env["STRONGROOM_TRASH_CUTS"] ?? 1);

/** In milliseconds; the sweep begins within it after a start. */
const longestLifeMs = 2_500;

function start(home: string): Promise<ServerProcess> {
  return startProcess([], {
    STRONGROOM_HOME: home,
    STRONGROOM_IDLE_TIMEOUT_MS: "0",
    STRONGROOM_KEEP_TRASH_DAYS: "1",
  });
}

type End = (server: ServerProcess) => Promise<void>;

/** Lives of a server, each ended by `end` at a random moment; at the end the sweep finishes. */
async function live(home: string, lives: number, end: End): Promise<void> {
  const [random, subject] = [new Random(runSeed), new BesideSubject()];
  for (let life = 0; life < lives; life++) {
    const server = await start(home);
    await (life === 0 ? subject.begin(server) : subject.inspect(server));
    const changing = subject.change(server, random);
    changing.catch(() => {}); // awaited below
    await sleep(random.below(longestLifeMs));
    await end(server);
    closeConnections(server);
    await changing;
    await restAndAge(home, subject, random);
    if (lives > 20 && life % 20 === 0) report(`${life} ends`);
  }
  const server = await start(home);
  await subject.inspect(server);
  while (await subject.isSweeping(server)) await sleep(50);
  await end(server);
  report(`${lives} ends, ${subject.changes} changes acknowledged: all as promised`);
}

/** Only a vault whose batches are all in the tree has files that the test may change. */
async function restAndAge(home: string, subject: BesideSubject, random: Random): Promise<void> {
  if (random.chance(0.5)) return;
  const server = await start(home);
  await subject.inspect(server);
  server.child.kill("SIGTERM");
  await server.ended;
  subject.age(home, random);
}

function report(figures: string): void {
  process.stdout.write(`      ${figures}\n`);
}

describe("while secrets move to the trash and back, and transit keys change", function () {
  this.timeout(0);

  it(`kill -9, ${kills} times: each secret is in one place, as it was, and each key whole (seed ${runSeed})`, async () => {
    await live(join(diskDirectory(), "home"), kills, async (server) => {
      server.child.kill("SIGKILL");
      await server.ended;
    });
  });

  it(`a power cut, ${cuts} times: the same`, async function () {
    skipFor(this, whyNoDisk());
    const disk = new Disk();
    await live(join(disk.directory, "home"), cuts, (server) => disk.cutPowerOf(server));
  });
});
