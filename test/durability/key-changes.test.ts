/** kill -9 and power cuts at random moments of changes of the passphrase, the keys and the master key. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { diskDirectory } from "../../tools/rig/clean-up.js";
import { skipFor } from "../../tools/rig/needs.js";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { Random, runSeed } from "../support/random.js";
import { KeySubject } from "./key-subject.js";
import { Disk, whyNoDisk } from "./power-cut-disk.js";

/** Short in the normal suite; 200 and 40 in the long form. */
const kills = Number(process.env["STRONGROOM_KEY_KILLS"] ?? 1);
const cuts = Number(process.env["STRONGROOM_KEY_CUTS"] ?? 1);

/** In one life of the server, and how long it lives on: a change takes as long, and a part of a rotation. */
const mostChanges = 5;
const longestWaitMs = 200;

function start(home: string): Promise<ServerProcess> {
  return startProcess([], { STRONGROOM_HOME: home, STRONGROOM_IDLE_TIMEOUT_MS: "0" });
}

/** Lives of a server, each ended by `end` at a random moment; at the end what is unfinished is finished. */
async function live(home: string, lives: number, end: End): Promise<void> {
  const [random, subject] = [new Random(runSeed), new KeySubject()];
  for (let life = 0; life <= lives; life++) {
    const server = await start(home);
    await (life === 0 ? subject.begin(server) : subject.inspect(server));
    if (life === lives) await subject.finish(server);
    await changeUntil(life === lives ? "at rest" : random.below(mostChanges), server, subject, random, end);
    if (lives > 20 && life % 20 === 0) report(`${life} ends`);
  }
  report(
    `${lives} ends, ${subject.changes} changes acknowledged, ${subject.rotations} of them rotations: all as promised`,
  );
}

type End = (server: ServerProcess) => Promise<void>;

/** Ends the server at a random moment after so many more changes. */
async function changeUntil(
  changes: number | "at rest",
  server: ServerProcess,
  subject: KeySubject,
  random: Random,
  end: End,
): Promise<void> {
  if (changes === "at rest") return end(server);
  const enough = subject.changes + changes;
  let over = false;
  const changing = subject.change(server, random).finally(() => {
    over = true;
  });
  changing.catch(() => {}); // awaited below
  while (!over && subject.changes < enough) await sleep(5);
  await sleep(random.below(longestWaitMs));
  await end(server);
  await changing;
}

function report(figures: string): void {
  process.stdout.write(`      ${figures}\n`);
}

describe("while passphrase, keys and master key change", function () {
  this.timeout(0);

  it(`kill -9, ${kills} times: exactly one passphrase opens the vault, every key as promised, and all secrets are there`, async () => {
    const home = join(diskDirectory(), "home");
    await live(home, kills, async (server) => {
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
