/**
 * Servers in hostile surroundings: few descriptors, no standard streams, little memory, stopped, killed while deriving.
 * Results: docs/inside/torture.md.
 */

import { spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import pMap from "p-map";
import { findHolder } from "../../src/storage/files/claim.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { preparedHome } from "../../tools/rig/prepared-home.js";
import { environment, mainFile, node, run, type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { passphrase } from "../../tools/rig/server.js";
import {
  mustGet,
  mustInit,
  mustList,
  mustLock,
  mustPut,
  mustStatus,
  mustSucceed,
  mustUnlock,
  send,
} from "../../tools/rig/test-client.js";
import { canRun, mustRun } from "../support/mounts.js";
import { isMissing, onlyWith } from "../support/needs.js";

/** Short in the normal suite; 30 s in the long form. */
const stoppedMs = Number(process.env["STRONGROOM_STOPPED_MS"] ?? 3_000);

/** Too slow for the normal suite. */
const expensively = onlyWith("STRONGROOM_TORTURE");

const names = (count: number) => Array.from({ length: count }, (_, n) => `torture/${n % 7}/${n}`);

describe("few file descriptors", () => {
  if (isMissing(canRun("prlimit", "--nofile") ? null : "needs prlimit")) return;

  it("a server with 64 descriptors takes 64 puts at once, or refuses them with 503 and loses nothing", async () => {
    const server = await startProcess();
    await mustInit(server);
    mustRun("prlimit", "--pid", String(server.child.pid), "--nofile=64:64");
    const answers = await pMap(names(64), async (name) => {
      const headers = { connection: "close" }; // or idle connections hold the descriptors for another 30 s
      const put = { method: "PUT", path: `/v1/secrets/${name}`, body: { value: name }, headers };
      const { status } = await send(server, put).catch(() => ({ status: 0 })); // 0: its connection was refused
      expect(status).to.be.oneOf([0, 200, 503]);
      return { name, status };
    });
    const stored = answers.filter(({ status }) => status === 200);
    for (const { name } of stored) expect((await oncePossible(server, `/${name}`))["value"]).to.equal(name);
    await oncePossible(server, "/torture/after", { value: "after" });
    expect((await oncePossible(server, ""))["entries"]).to.have.length.at.least(stored.length + 1);
    const { code, stderr } = await run(["backup", join(temporaryDirectory(), "b.tar")], {
      STRONGROOM_HOME: server.home,
    });
    expect([code, stderr]).to.deep.equal([0, ""]);
  });

  it("a server starts and runs its commands within 64 descriptors", async () => {
    const server = await startProcess();
    await mustInit(server);
    await mustPut(server, "a/b", "v");
    await server.stop();
    for (const command of [["doctor"], ["backup", join(temporaryDirectory(), "b.tar")]]) {
      const { code, stderr } = await limited(["--nofile=64:64"], command, server.home);
      expect([code, stderr], command[0]).to.deep.equal([0, ""]);
    }
  });
});

/** Repeats a request, a put if there is a body, while connections that are still open take the last descriptors. */
async function oncePossible(server: ServerProcess, target: string, body?: object) {
  const request = { method: body === undefined ? "GET" : "PUT", path: `/v1/secrets${target}`, ...(body && { body }) };
  for (;;) {
    const answer = await send(server, request).catch(() => null); // the connection was refused
    if (answer !== null && answer.status !== 503) return mustSucceed(answer);
    await sleep(100);
  }
}

/** Runs a command under prlimit. */
async function limited(limits: readonly string[], command: readonly string[], home: string) {
  const args = [...limits, node, mainFile, ...command];
  const child = spawn("prlimit", args, { env: environment({ STRONGROOM_HOME: home }) });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, stderr };
}

describe("missing standard streams", () => {
  it("a server without standard streams serves and stops, and no file of the vault gets their descriptors", async () => {
    const home = preparedHome();
    const env = environment({ STRONGROOM_HOME: home, STRONGROOM_PORT: "0" });
    const closed = `exec ${JSON.stringify(node)} ${JSON.stringify(mainFile)} serve <&- >&- 2>&-`;
    const child = spawn("sh", ["-c", closed], { env, stdio: "ignore" });
    later(() => void child.kill("SIGKILL"));
    while ((await findHolder(join(home, "vault")))?.url == null) await sleep(20);
    const file = join(temporaryDirectory(), "passphrase");
    writeFileSync(file, passphrase, { mode: 0o600 });
    const strongroom = (...args: string[]) => run(args, { STRONGROOM_HOME: home });
    expect((await strongroom("init", "--passphrase-file", file)).code).to.equal(0);
    expect((await strongroom("generate", "a/b", "-q")).code).to.equal(0);
    const ended = new Promise((resolve) => child.once("exit", resolve));
    expect((await strongroom("shutdown")).code).to.equal(0);
    expect(await ended).to.equal(0);
    expect((await strongroom("doctor")).code).to.equal(0);
  });

  it("a server whose output is no longer read keeps running", async () => {
    const server = await startProcess(["--log-level", "debug"]);
    await mustInit(server);
    server.child.stdout?.destroy();
    server.child.stderr?.destroy();
    for (const name of names(20)) await mustPut(server, name, "v");
    expect(await mustList(server)).to.have.lengthOf(20);
  });
});

describe("SIGSTOP across the idle deadline", () => {
  it(`a server stopped for ${stoppedMs} ms across its idle deadline is locked for the next request`, async () => {
    const server = await startProcess(["--idle-timeout-ms", String(stoppedMs - 200)]);
    await mustInit(server);
    await mustPut(server, "a", "v");
    server.child.kill("SIGSTOP");
    await sleep(stoppedMs);
    const get = send(server, { path: "/v1/secrets/a" }); // waits in the kernel
    server.child.kill("SIGCONT");
    const { status, json } = await get;
    expect([status, json["code"]]).to.deep.equal([403, "VAULT_LOCKED"]);
    await mustUnlock(server);
    await mustGet(server, "a");
  });
});

describe("large values", () => {
  expensively("values of 1 MiB on 64 connections are all stored and returned whole", async function () {
    this.timeout(180_000);
    const server = await startProcess();
    await mustInit(server);
    const large = (name: string) => name.padEnd(2 ** 20, name);
    await pMap(names(64), (name) => mustPut(server, name, large(name)));
    const whole = await pMap(names(64), async (name) => (await mustGet(server, name))["value"] === large(name));
    expect(whole.every(Boolean)).to.equal(true);
  });
});

describe("kills while a key is derived", () => {
  for (const [what, path] of [
    ["an unlock", "/v1/unlock"],
    ["a forced init", "/v1/init"],
  ] as const) {
    expensively(`a server killed during ${what} starts again with the vault and passphrase it had`, async () => {
      const server = await startProcess(["--scrypt-log-n", "17"]);
      await mustInit(server);
      await mustPut(server, "a", "v");
      await mustLock(server);
      const request = send(server, { method: "POST", path, body: { passphrase, force: true } }).catch(() => null);
      await sleep(150);
      server.child.kill("SIGKILL");
      await Promise.all([request, server.ended]);
      const again = await startProcess([], { STRONGROOM_HOME: server.home });
      await mustUnlock(again);
      if (what === "an unlock") await mustGet(again, "a");
    });
  }
});

describe("too little memory", () => {
  expensively(
    "a server with too little memory for a large value loses at most its thread or process, and no secret",
    async function () {
      this.timeout(180_000);
      const server = await startProcess([], {
        STRONGROOM_MAX_VALUE_BYTES: String(64 * 2 ** 20),
        NODE_OPTIONS: "--max-old-space-size=32",
      });
      await mustInit(server);
      await mustPut(server, "a", "kept");
      const value = "é".repeat(31 * 2 ** 20);
      const put = { method: "PUT", path: "/v1/secrets/large", body: { value } };
      const outcome = await send(server, put).then(
        ({ status }) => status,
        () => 0,
      );
      expect(outcome).to.be.oneOf([0, 200, 500, 503]);
      await mustKeep(server, "a", "kept");
    },
  );

  const groups = "/sys/fs/cgroup/memory";
  const isPossible = process.getuid?.() === 0 && existsSync(join(groups, "memory.limit_in_bytes"));
  if (isMissing(isPossible ? null : "needs root, and control groups of version 1 that limit memory")) return;
  expensively(
    "a server with too little memory in its control group has every acknowledged secret, also when killed",
    async function () {
      this.timeout(180_000);
      const server = await startProcess();
      await mustInit(server);
      await mustPut(server, "a", "kept");
      limitMemory(join(groups, `strongroom-test-${process.pid}`), server, 24);
      const body = { passphrase, force: false };
      const writes = names(200).map(async (name) => {
        const put = { method: "PUT", path: `/v1/secrets/${name}`, body: { value: name.padEnd(500_000, "x") } };
        const { status } = await send(server, put).catch(() => ({ status: 0 }));
        return status === 200 ? name : null;
      });
      await send(server, { method: "POST", path: "/v1/unlock", body }).catch(() => null);
      const stored = (await Promise.all(writes)).filter((name) => name !== null);
      const again = await mustKeep(server, "a", "kept");
      for (const name of stored) await mustGet(again, name);
    },
  );
});

/** Restarts the server if it has ended; then it must have the secret. */
async function mustKeep(server: ServerProcess, path: string, value: string): Promise<ServerProcess> {
  const alive = await mustStatus(server).then(
    () => true,
    () => false,
  );
  if (!alive) await server.ended;
  const current = alive ? server : await startProcess([], { STRONGROOM_HOME: server.home });
  await mustUnlock(current);
  expect((await mustGet(current, path))["value"]).to.equal(value);
  return current;
}

/** Moves the server into a control group where it may use this much more memory, in MiB. */
function limitMemory(group: string, { child }: ServerProcess, more: number): void {
  mkdirSync(group);
  later(async () => {
    while (readFileSync(join(group, "cgroup.procs"), "utf8") !== "") await sleep(20);
    rmdirSync(group);
  });
  const write = (name: string, text: string) => {
    const descriptor = openSync(join(group, name), "w");
    writeFileSync(descriptor, text);
    closeSync(descriptor);
  };
  write("memory.limit_in_bytes", String(more * 2 ** 20));
  write("cgroup.procs", String(child.pid)); // what it has already is not charged here
}
