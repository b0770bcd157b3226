/** Attacks of the demonstration, each carried out on a vault of its own. */
import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { copyFile, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { pMapIterable } from "p-map";
import { decodeKeys } from "../rig/decoder.js";
import { hitsIn, takeSnapshots } from "../rig/heap-snapshot.js";
import { run, type ServerProcess, startProcess } from "../rig/process.js";
import { mustGet, mustInit, mustPut, mustStatus, mustUnlock, send } from "../rig/test-client.js";
import { foreignHome, manyAddresses, ownersLock, shortToken, steeringName, webPage } from "./outside-attacks.js";
import type { Attack } from "./printout.js";

const passphrase = "the passphrase under attack";
const secretValue = "the secret value under attack";

type Try = (server: ServerProcess) => Promise<Attack>;

async function tryOne(attack: Try): Promise<Attack> {
  const server = await startProcess();
  await mustInit(server, { passphrase });
  await mustPut(server, "a", secretValue);
  await mustPut(server, "b", "another value");
  const outcome = await attack(server);
  await server.stop();
  return outcome;
}

async function debuggerBySignal(server: ServerProcess): Promise<Attack> {
  server.child.kill("SIGUSR1");
  await new Promise((resolve) => setTimeout(resolve, 500));
  await mustStatus(server);
  const open = /debugger/i.test(server.logged());
  return { attack: "SIGUSR1, to open the debugger", outcome: open ? "the debugger listens" : "ignored", holds: !open };
}

async function heapSnapshot(server: ServerProcess): Promise<Attack> {
  await mustGet(server, "a");
  const { frontEnd } = await takeSnapshots(server);
  const { kek, masterKey } = decodeKeys(server.home, passphrase);
  const hits = [passphrase, secretValue, kek, masterKey].reduce((sum, secret) => sum + hitsIn(frontEnd, secret), 0);
  return { attack: "heap snapshot of the front end", outcome: `${hits} secrets in it`, holds: hits === 0 };
}

/** Makes and searches a core file where the machine writes them into the working directory. */
async function coreDump(server: ServerProcess): Promise<Attack> {
  const attack = "core dump of the unlocked server";
  const filter = readFileSync(`/proc/${server.child.pid}/coredump_filter`, "utf8").trim();
  const { masterKey } = decodeKeys(server.home, passphrase);
  const directory = `/proc/${server.child.pid}/cwd`;
  const cwd = await promisify(execFile)("readlink", [directory]).then(({ stdout }) => stdout.trim());
  await promisify(execFile)("prlimit", ["--pid", String(server.child.pid), "--core=unlimited"]).catch(() => {});
  server.child.kill("SIGABRT");
  await server.ended;
  const core = existsSync(cwd) ? readdirSync(cwd).find((name) => name.startsWith("core")) : undefined;
  if (core === undefined) {
    return {
      attack,
      outcome: `no core file, filter ${filter}`,
      holds: /^0+$/.test(filter),
    };
  }
  const dump = await readFile(join(cwd, core));
  const hits = dump.indexOf(masterKey) >= 0 || dump.indexOf(passphrase) >= 0;
  return { attack, outcome: `${dump.length} bytes, ${hits ? "with secrets" : "no secret"}`, holds: !hits };
}

const movedBlob: Try = (server) =>
  refusedGet(server, "another secret's file over this one's", () => {
    return copyFile(sealedFile(server, "b"), sealedFile(server, "a"));
  });

const swappedBlobs: Try = (server) =>
  refusedGet(server, "two secrets' files swapped", async () => {
    const aside = `${sealedFile(server, "a")}.aside`;
    await rename(sealedFile(server, "a"), aside);
    await rename(sealedFile(server, "b"), sealedFile(server, "a"));
    await rename(aside, sealedFile(server, "b"));
  });

const shortTag: Try = (server) =>
  refusedGet(server, "a tag of 4 bytes instead of 16", async () => {
    const blob = await readFile(sealedFile(server, "a"));
    await writeFile(sealedFile(server, "a"), blob.subarray(0, -12));
  });

async function secondServer(server: ServerProcess): Promise<Attack> {
  const { code, stderr } = await run(["serve", "--port", "0"], { STRONGROOM_HOME: server.home });
  const holds = code === 1 && stderr.includes(`pid ${server.child.pid}`);
  return { attack: "a second server on the same vault", outcome: `exit ${code}, names the first`, holds };
}

async function editedHeader(server: ServerProcess): Promise<Attack> {
  const file = join(server.home, "vault", "gen-1", "header.json");
  const again = await restart(server, async () => {
    await writeFile(file, (await readFile(file, "latin1")).replace('"logN":14', '"logN":15'));
  });
  const { status, json } = await send(again, { method: "POST", path: "/v1/unlock", body: { passphrase } });
  await again.stop();
  return {
    attack: "an edited cost in the header",
    outcome: `${status} ${String(json["code"])}`,
    holds: status === 401,
  };
}

/** Changes the files of a stopped server: one that runs returns what it read before, which is authentic. */
async function refusedGet(server: ServerProcess, attack: string, change: () => Promise<void>): Promise<Attack> {
  const again = await restart(server, change);
  await mustUnlock(again, passphrase);
  const { status, json } = await send(again, { path: "/v1/secrets/a" });
  await again.stop();
  return {
    attack,
    outcome: `${status} ${String(json["code"])}`,
    holds: status === 500 && json["code"] === "INTEGRITY",
  };
}

async function restart(server: ServerProcess, change: () => Promise<void>): Promise<ServerProcess> {
  await server.stop();
  await change();
  return startProcess([], { STRONGROOM_HOME: server.home });
}

function sealedFile(server: ServerProcess, name: string): string {
  return join(server.home, "vault", "gen-1", "secrets", `${name}.sealed`);
}

const attacks: readonly Try[] = [
  debuggerBySignal,
  heapSnapshot,
  coreDump,
  movedBlob,
  swappedBlobs,
  shortTag,
  secondServer,
  editedHeader,
  foreignHome,
  manyAddresses,
  shortToken,
  webPage,
  ownersLock,
  steeringName,
];

/** How many attacks run side by side, each on a server of its own. */
const parallel = 3;

/** Yields the outcome of each attack, in their order. */
export function tryAttacks(): AsyncIterable<Attack> {
  return pMapIterable(attacks, tryOne, { concurrency: parallel });
}
