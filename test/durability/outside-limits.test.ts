/** A server process without resources: a full disk, no inodes, no file descriptors. */

import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { expect } from "chai";
import { systemCode } from "../../src/errors.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { run, type ServerProcess, startProcess } from "../../tools/rig/process.js";
import {
  mustInit,
  mustLock,
  mustRefuse,
  mustStatus,
  mustSucceed,
  mustUnlock,
  send,
} from "../../tools/rig/test-client.js";
import { canRun, mount, mustRun, whyNoMounts } from "../support/mounts.js";
import { isMissing } from "../support/needs.js";
import { change, mustBeClear, mustSurviveRestart, readState, type State, tempFiles } from "./outside.js";

/** A server whose home is on a disk of its own. */
async function startOnTmpfs(limit: string): Promise<ServerProcess> {
  const directory = join(temporaryDirectory(), "disk");
  mkdirSync(directory);
  mount("tmpfs", directory, "-t", "tmpfs", "-o", `${limit},mode=700`);
  const server = await startProcess([], { STRONGROOM_HOME: join(directory, "home") });
  await mustInit(server);
  return server;
}

/** Puts secrets until the disk is full. */
async function fill(server: ServerProcess, value: string, states: Map<string, State>): Promise<void> {
  for (let n = 0; n < 1_000; n++) {
    const path = `filler/${states.size}/${n}`;
    const answer = await change(server, path, value);
    mustBeClear(answer);
    states.set(path, answer.status === 200 ? value : null);
    if (answer.status === 503) return;
  }
  throw new Error("the disk is never full");
}

/** Fills the disk as another program would. */
function writeUntilFull(file: string): void {
  const descriptor = openSync(file, "w");
  try {
    for (;;) writeSync(descriptor, "z".repeat(4_096));
  } catch (error) {
    expect(systemCode(error)).to.equal("ENOSPC");
  } finally {
    closeSync(descriptor);
  }
}

async function mustBeFound({ home }: ServerProcess, message: string): Promise<void> {
  const environment = { STRONGROOM_HOME: home };
  const doctor = await run(["doctor"], environment);
  expect(doctor.code).to.equal(12);
  expect(doctor.stdout).to.contain("disk-full").and.to.contain(`its disk has ${message}`);
  expect((await run(["status"], environment)).stdout).to.contain(
    `  disk           ${message}: free space on it, since`,
  );
}

describe("full disks", function () {
  this.timeout(180_000);
  if (isMissing(whyNoMounts())) return;

  for (const [what, limit, value, found] of [
    ["no space", "size=1m", "x".repeat(30_000), "less than 256 KiB left"],
    ["no inodes", "nr_inodes=120", "small", "room for fewer than 16 more files"],
  ] as const) {
    it(`a disk with ${what} left is reported, refuses puts, keeps every value, and takes puts after a delete`, async () => {
      const server = await startOnTmpfs(limit);
      const states = new Map<string, State>();
      await fill(server, value, states);
      expect(tempFiles(server)).to.deep.equal([]);
      const full = await change(server, "filler/0/0", "y".repeat(200_000));
      mustBeClear(full);
      if (what === "no space") mustRefuse(full, 503, "UNAVAILABLE");
      await mustBeFound(server, found);
      if (full.status === 200) states.set("filler/0/0", "y".repeat(200_000));
      await mustStatus(server);
      await mustLock(server);
      await mustUnlock(server);
      for (const [path, state] of states) expect(await readState(server, path), path).to.equal(state);
      mustSucceed(await change(server, "filler/0/0", null));
      const less = value.slice(value.length / 2); // the audit log has taken some of the space
      mustSucceed(await change(server, "filler/after", less));
      states.set("filler/0/0", null).set("filler/after", less);
      await mustSurviveRestart(server, states);
    });
  }

  it("a server killed on a full disk restarts, and serves reads and deletes", async () => {
    const server = await startOnTmpfs("size=1m");
    const states = new Map<string, State>();
    for (const size of [30_000, 3_000, 10]) await fill(server, "x".repeat(size), states);
    server.child.kill("SIGKILL");
    await server.ended;
    writeUntilFull(join(server.home, "..", "something else"));
    const again = await mustSurviveRestart(server, states);
    mustSucceed(await change(again, "filler/0/0", null));
    mustSucceed(await change(again, "filler/after", "stored"));
  });
});

describe("exhausted file descriptors", function () {
  this.timeout(180_000);
  if (isMissing(canRun("prlimit", "--nofile") ? null : "needs prlimit")) return;

  it("puts, deletes and gets get 503 without file descriptors, and work again once some are free", async () => {
    const server = await startProcess();
    await mustInit(server);
    mustSucceed(await change(server, "a/b", "old"));
    await limitDescriptors(server, 0, async () => {
      mustRefuse(await change(server, "a/b", "new"), 503, "UNAVAILABLE");
      mustRefuse(await change(server, "a/b", null), 503, "UNAVAILABLE");
      mustRefuse(await send(server, { path: "/v1/secrets/a/b" }), 503, "UNAVAILABLE");
      await mustStatus(server);
    });
    expect(await readState(server, "a/b")).to.equal("old");
    expect(tempFiles(server)).to.deep.equal([]);
    mustSucceed(await change(server, "a/b", "new"));
    await mustSurviveRestart(server, new Map([["a/b", "new"]]));
  });

  it("open connections work when too many use up the descriptors, and new ones once some have closed", async () => {
    const server = await startProcess();
    await mustInit(server);
    await limitDescriptors(server, 20, async () => {
      const sockets = Array.from({ length: 100 }, () => flood(server));
      await Promise.all(sockets.map(settled));
      mustBeClear(await change(server, "a/b", "on an open connection"));
      await mustStatus(server);
      for (const socket of sockets) socket.destroy();
      while (!(await isTaken(flood(server)))); // waiting connections are refused first
      await untilStored(server);
    });
    await mustSurviveRestart(server, new Map([["a/b", "stored"]]));
  });
});

/** Does the work while the server may open only this many more descriptors. */
async function limitDescriptors(server: ServerProcess, more: number, work: () => Promise<void>): Promise<void> {
  const limitTo = (soft: number | string = "") =>
    mustRun("prlimit", "--pid", String(server.child.pid), `--nofile=${soft}:`);
  const [, before] = /^Max open files +(\d+)/m.exec(readFileSync(`/proc/${server.child.pid}/limits`, "utf8")) ?? [];
  limitTo(freeDescriptor(server, more));
  try {
    await work();
  } finally {
    limitTo(before);
  }
}

/** The n-th free descriptor number, from 0: the limit is on numbers, and the kernel assigns the lowest. */
function freeDescriptor(server: ServerProcess, n: number): number {
  const open = new Set(readdirSync(`/proc/${server.child.pid}/fd`).map(Number));
  const free = Array.from({ length: 1_024 }, (_, number) => number).filter((number) => !open.has(number));
  return free[n] ?? 1_024;
}

function flood(server: ServerProcess): TLSSocket {
  const socket = connect({ host: "127.0.0.1", port: server.port, servername: "localhost", ca: server.certificate });
  socket.on("error", () => {});
  later(() => void socket.destroy());
  return socket;
}

function isTaken(socket: TLSSocket): Promise<boolean> {
  return new Promise<boolean>((resolve) => {
    socket.once("secureConnect", () => resolve(true)).once("close", () => resolve(false));
  }).finally(() => socket.destroy());
}

/** The outcome of each connection attempt. */
function settled(socket: TLSSocket): Promise<void> {
  return new Promise((resolve) => {
    socket.once("secureConnect", resolve).once("close", () => resolve());
    setTimeout(resolve, 1_000);
  });
}

/** The server notices closed connections with a delay. */
async function untilStored(server: ServerProcess): Promise<void> {
  for (;;) {
    const answer = await change(server, "a/b", "stored");
    mustBeClear(answer);
    if (answer.status === 200) return;
  }
}
