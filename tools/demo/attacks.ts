/** Attacks of the demonstration, each carried out on a vault of its own. */
import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { copyFile, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { decodeKeys } from "../rig/decoder.js";
import { hitsIn, takeSnapshots } from "../rig/heap-snapshot.js";
import { run, type ServerProcess, startProcess } from "../rig/process.js";
import { mustGet, mustInit, mustPut, mustStatus, send } from "../rig/test-client.js";
import { foreignHome, manyAddresses, ownersLock, shortToken, steeringName, webPage } from "./outside-attacks.js";
import type { Attack } from "./printout.js";

const passphrase = "the passphrase under attack";
const secretValue = "the secret value under attack";

export async function tryAttacks(): Promise<Attack[]> {
  const outcomes: Attack[] = [];
  for (const attack of [
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
  ]) {
    const server = await startProcess();
    await mustInit(server, { passphrase });
    await mustPut(server, "a", secretValue);
    await mustPut(server, "b", "another value");
    outcomes.push(await attack(server));
    await server.stop();
  }
  return outcomes;
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
  return { attack: "heap snapshot of the front end, unlocked", outcome: `${hits} secrets in it`, holds: hits === 0 };
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
      outcome: `no core file here; the kernel's filter leaves out all memory (${filter})`,
      holds: /^0+$/.test(filter),
    };
  }
  const dump = await readFile(join(cwd, core));
  const hits = dump.indexOf(masterKey) >= 0 || dump.indexOf(passphrase) >= 0;
  return { attack, outcome: `${dump.length} bytes, ${hits ? "with secrets" : "no secret in them"}`, holds: !hits };
}

async function movedBlob(server: ServerProcess): Promise<Attack> {
  await copyFile(sealedFile(server, "b"), sealedFile(server, "a"));
  return refusedGet(server, "another secret's file copied over this one's");
}

async function swappedBlobs(server: ServerProcess): Promise<Attack> {
  const aside = `${sealedFile(server, "a")}.aside`;
  await rename(sealedFile(server, "a"), aside);
  await rename(sealedFile(server, "b"), sealedFile(server, "a"));
  await rename(aside, sealedFile(server, "b"));
  return refusedGet(server, "two secrets' files swapped");
}

async function shortTag(server: ServerProcess): Promise<Attack> {
  const blob = await readFile(sealedFile(server, "a"));
  await writeFile(sealedFile(server, "a"), blob.subarray(0, -12));
  return refusedGet(server, "a tag of 4 bytes instead of 16");
}

async function secondServer(server: ServerProcess): Promise<Attack> {
  const { code, stderr } = await run(["serve", "--port", "0"], { STRONGROOM_HOME: server.home });
  const holds = code === 1 && stderr.includes(`pid ${server.child.pid}`);
  return { attack: "a second server on the same vault", outcome: `exit ${code}, names the first one's pid`, holds };
}

async function editedHeader(server: ServerProcess): Promise<Attack> {
  await server.stop();
  const file = join(server.home, "vault", "gen-1", "header.json");
  const header = await readFile(file, "latin1");
  await writeFile(file, header.replace('"logN":14', '"logN":15'));
  const again = await startProcess([], { STRONGROOM_HOME: server.home });
  const { status, json } = await send(again, { method: "POST", path: "/v1/unlock", body: { passphrase } });
  await again.stop();
  return {
    attack: "an edited cost in the header",
    outcome: `${status} ${String(json["code"])}`,
    holds: status === 401,
  };
}

async function refusedGet(server: ServerProcess, attack: string): Promise<Attack> {
  const { status, json } = await send(server, { path: "/v1/secrets/a" });
  const holds = status === 500 && json["code"] === "INTEGRITY";
  return { attack, outcome: `${status} ${String(json["code"])}`, holds };
}

function sealedFile(server: ServerProcess, name: string): string {
  return join(server.home, "vault", "gen-1", "secrets", `${name}.sealed`);
}
