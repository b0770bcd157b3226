/** The claim on a vault: one server at a time, however many start and however the last one ended. */
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { cleanUpMark, cleanUpTo, later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { mainFile, NotStarted, run, type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { mustGet, mustInit, mustPut, mustStatus, mustUnlock } from "../../tools/rig/test-client.js";

/** One in the normal suite; 100 in the long form. */
const rounds = Number(process.env["STRONGROOM_CLAIM_ROUNDS"] ?? 1);

const starters = rounds > 1 ? 20 : 8;

/** Milliseconds from spawn to exit of each refused server: printed, not asserted. */
const refusalMs: number[] = [];

describe(`${starters} simultaneous starts on one vault`, function () {
  this.timeout(0);

  it(`one of ${starters} servers serves, the others name its pid and exit; a kill frees the vault (${rounds} rounds)`, async () => {
    const home = await homeOfKilledServer();
    for (let round = 1; round <= rounds; round++) {
      const mark = cleanUpMark();
      const holder = await race(home);
      await mustUnlock(holder);
      expect((await mustGet(holder, "a/b"))["value"]).to.equal("v");
      await kill(holder);
      await cleanUpTo(mark);
      if (rounds > 2 && round % 10 === 0) process.stdout.write(`      ${round} rounds, 0 double holders; ${times()}\n`);
    }
  });
});

async function homeOfKilledServer(): Promise<string> {
  const server = await startProcess();
  await mustInit(server);
  await mustPut(server, "a/b", "v");
  await kill(server);
  return server.home;
}

async function kill(server: ServerProcess): Promise<void> {
  server.child.kill("SIGKILL");
  await server.ended;
}

/** Starts them all and returns the one that serves. */
async function race(home: string): Promise<ServerProcess> {
  const before = readFiles(home);
  const started = performance.now();
  const outcomes = await Promise.all(
    Array.from({ length: starters }, async () => {
      try {
        return await startProcess([], { STRONGROOM_HOME: home });
      } catch (error) {
        if (!(error instanceof NotStarted)) throw error;
        refusalMs.push(performance.now() - started);
        return error.ended;
      }
    }),
  );
  const serving = outcomes.filter((outcome) => "child" in outcome);
  const refused = outcomes.filter((outcome) => "code" in outcome);
  expect(serving, JSON.stringify(refused)).to.have.lengthOf(1);
  const [holder] = serving;
  if (holder === undefined) throw new Error("no server serves");
  expect((await mustStatus(holder))["initialized"]).to.equal(true);
  for (const { code, stdout, stderr } of refused) {
    expect({ code, stdout }).to.deep.equal({ code: 1, stdout: "" });
    expect(stderr).to.contain(`another server (pid ${holder.child.pid}) already serves ${holder.vaultPath}`);
  }
  expect(readFiles(home)).to.deep.equal(before);
  return holder;
}

/** Every file with its inode, time and text, without those that the serving one writes: pid file and audit log. */
function readFiles(home: string): Record<string, string> {
  const names = readdirSync(home, { recursive: true, encoding: "utf8" }).filter(
    (name) => name !== "vault/server.pid" && !name.startsWith("audit/"),
  );
  return Object.fromEntries(
    names.sort().map((name) => {
      const path = join(home, name);
      const { ino, mtimeNs } = statSync(path, { bigint: true });
      return [name, statSync(path).isFile() ? `${ino} ${mtimeNs} ${readFileSync(path, "base64")}` : "directory"];
    }),
  );
}

function times(): string {
  const sorted = [...refusalMs].sort((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  return `refused after ${at(0)} ms at best, ${at(0.5)} median, ${at(1)} at worst, since all were started`;
}

describe("the claim on a vault in use", () => {
  before(function () {
    needs(this, process.platform === "linux", "Linux");
  });

  it("a claim holds against a server in another network and pid namespace", async function () {
    const unshare = ["--net", "--pid", "--fork", "--kill-child", "--mount-proc"];
    needs(this, spawnSync("unshare", [...unshare, "true"]).status === 0, "root, and namespaces");
    const server = await startProcess();
    const { status, stderr } = spawnSync("unshare", [...unshare, process.execPath, mainFile, "serve", "--port", "0"], {
      env: { PATH: process.env["PATH"], HOME: temporaryDirectory(), STRONGROOM_HOME: server.home },
      encoding: "utf8",
      timeout: 30_000, // in case it serves
    });
    expect(status).to.equal(1);
    expect(stderr).to.contain(`another server already serves ${server.vaultPath}`);
    await mustStatus(server);
  });

  it("a claim holds by an abstract socket where there is no flock command", async () => {
    const empty = temporaryDirectory();
    const server = await startProcess([], { PATH: empty });
    const { code, stderr } = await run(["serve", "--port", "0"], { PATH: empty, STRONGROOM_HOME: server.home });
    expect(code).to.equal(1);
    expect(stderr).to.contain(`another server (pid ${server.child.pid}) already serves`);
    await kill(server);
    await startProcess([], { PATH: empty, STRONGROOM_HOME: server.home });
  });

  it("a start is refused when the flock command was killed, since the claim's state is then unknown", async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, "flock"), "#!/bin/sh\nkill -9 $$\n", { mode: 0o755 });
    const home = join(temporaryDirectory(), "home");
    const { code, stderr } = await run(["serve", "--port", "0"], { PATH: directory, STRONGROOM_HOME: home });
    expect([code, stderr]).to.deep.equal([
      1,
      "strongroom: flock, which locks the vault, was killed by SIGKILL: start again\n",
    ]);
  });

  for (const [first, second] of [
    ["with", "without"],
    ["without", "with"],
  ]) {
    it(`a claim of a server ${first} the flock command holds against one ${second} it`, async () => {
      const paths = { with: process.env["PATH"] ?? "", without: temporaryDirectory() };
      const path = (which = "") => ({ PATH: which === "with" ? paths.with : paths.without });
      const server = await startProcess([], path(first));
      const { code, stderr } = await run(["serve", "--port", "0"], { ...path(second), STRONGROOM_HOME: server.home });
      expect(code).to.equal(1);
      expect(stderr).to.contain(`pid ${server.child.pid}`);
    });
  }

  it("a user who may not open the directory cannot block the claim", async () => {
    const home = join(temporaryDirectory(), "home");
    mkdirSync(join(home, "vault"), { recursive: true, mode: 0o700 });
    const { dev, ino } = statSync(join(home, "vault"), { bigint: true });
    const squatter = createServer().listen({ path: `\0strongroom-${dev}-${ino}` });
    later(() => void squatter.close());
    await new Promise((resolve) => squatter.once("listening", resolve));
    await startProcess([], { STRONGROOM_HOME: home });
  });
});
