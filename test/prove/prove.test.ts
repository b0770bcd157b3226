/** `strongroom prove` on real servers: what it shows, its forms, and when it cannot look. */
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { chmodSync, copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { Report } from "../../prove/report.js";
import { findWeaknesses } from "../../prove/weaknesses.js";
import { runCommandLine } from "../../src/cli/command-line.js";
import { later, shared, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { environment, mainFile, node, type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { passphrase } from "../../tools/rig/server.js";
import { type StringIoOptions, stringIo } from "../../tools/rig/string-io.js";
import {
  type Json,
  mustInit,
  mustLock,
  mustPut,
  mustStatus,
  mustSucceed,
  mustUnlock,
  type Send,
  secretTarget,
  send,
} from "../../tools/rig/test-client.js";
import { wrapFileKey } from "../support/age-stanza.js";
import { changing, rotating, untilRotated } from "../support/key-requests.js";
import { needsOtherUser, otherUser } from "../support/needs.js";
import { proveDump, pythonDump, takeDump } from "./both-programs.js";
import { attackerFound, listFailures, needsForeignMemory, type Proven, passphraseFile, prove } from "./run-prove.js";

/** Short in the normal suite; 20 in the long form. */
const rounds = Number(process.env["STRONGROOM_PROVE_ROUNDS"] ?? 1);

/** Runs of `prove` alone on idle and busy servers, in turns; 100 in the long form. */
const runs = Number(process.env["STRONGROOM_PROVE_RUNS"] ?? 0);

async function startVault(): Promise<ServerProcess> {
  const server = await startProcess(["--review-page"], { STRONGROOM_IDLE_TIMEOUT_MS: "0" });
  await mustInit(server);
  for (let i = 0; i < 5; i++)
    await mustPut(server, `app/Ünï code/${i}`, `value number ${i}, long enough to search for`);
  const binary = { value: randomBytes(40).toString("base64"), encoding: "base64" };
  await mustSend(server, "PUT", secretTarget("binary"), binary);
  await useTransitKeys(server);
  return server;
}

const keyTypes = ["aes256-gcm96", "ed25519", "ecdsa-p256", "x25519", "rsa-2048", "hmac"];

/** Makes a key of each type, with two versions, and uses them. */
async function useTransitKeys(server: ServerProcess): Promise<void> {
  const post = (path: string, body: object) => mustSend(server, "POST", `/v1/transit/${path}`, body);
  const [input, plaintext] = ["message", "plaintext"].map((text) => Buffer.from(text).toString("base64"));
  for (const type of keyTypes) {
    await post(`keys/${type}`, { type });
    const { versions } = await post(`keys/${type}/rotate`, {});
    if (type === "x25519") await post("unwrap/x25519", wrapFileKey(firstKey(versions), randomBytes(16)));
    else if (type !== "aes256-gcm96") await post(`${type === "hmac" ? "hmac" : "sign"}/${type}`, { input });
    if (!/^(?:aes|rsa)/.test(type)) continue;
    const { ciphertext } = await post(`encrypt/${type}`, { plaintext });
    await post(`decrypt/${type}`, { ciphertext });
  }
}

function firstKey(versions: unknown): string {
  return (versions as Record<string, { readonly publicKey?: string }>)["1"]?.publicKey ?? "";
}

async function mustSend(server: ServerProcess, method: string, path: string, body: object): Promise<Json> {
  return mustSucceed(await send(server, { method, path, body }));
}

describe("strongroom prove", function () {
  this.timeout(0);
  before(needsForeignMemory);
  const server = shared(startVault);

  it("prove needs no passphrase as an attacker, and has a control of its own while the vault is locked", async () => {
    const { report, code } = await prove(server().home, "--as-attacker");
    expect(attackerFound({ report, code })).to.deep.equal(["unlocked 1"]);
    const page = mustSucceed(await send(server(), { path: "/v1/review" }));
    expect(report.weaknesses)
      .to.deep.equal(page["weaknesses"])
      .and.to.deep.equal(findWeaknesses(server().child.pid ?? 0));
    expect(report.checks.filter(({ what }) => /ptrace|swap/.test(what))).to.deep.equal([]);
    await mustLock(server());
    const locked = await prove(server().home, "--as-attacker");
    expect(attackerFound(locked)).to.deep.equal(["locked 0", "null found"]);
    expect([locked.code, listFailures(locked)]).to.deep.equal([0, []]);
    await mustUnlock(server());
  });

  for (let round = 1; round <= rounds; round++) {
    it(`prove finds the key once, then not at all, then once, and loses no request of a busy server (round ${round})`, async () => {
      const load = startLoad(server());
      const proven = await prove(server().home, "--lock", "--with-canary");
      const { lost, count } = await load.end();
      expect([listFailures(proven), proven.code, proven.report.reason]).to.deep.equal([[], 0, null]);
      expect(attackerFound(proven)).to.deep.equal(["unlocked 1", "locked 0", "unlocked 1"]);
      const steps = [...new Set(proven.report.checks.map(({ step }) => step))];
      const searched = proven.report.checks.filter(
        ({ state, what }) => state === "locked" && / private .* keys/.test(what),
      );
      expect(searched.map(({ what }) => / private (\S+) keys/.exec(what)?.[1])).to.have.members(keyTypes);
      const opened = proven.report.checks.find(({ what }) => what.startsWith("transit keys opened"));
      expect(opened?.found).to.equal(keyTypes.length);
      const all = ["surroundings", "program", "decoder", "known-keys", "attacker", "canary", "disk"];
      expect(steps).to.deep.equal(all);
      const left = JSON.parse(readFileSync(join(server().home, "last-prove.json"), "utf8"));
      const { at, checks } = proven.report;
      expect(left).to.deep.equal({ at, verdict: "holds", checks: checks.length, failed: 0 });
      expect(count).to.be.above(0);
      expect(lost).to.deep.equal([]);
      expect((await mustStatus(server()))["locked"]).to.equal(false);
      if (rounds > 1) await mustAgreeOnDumps(server());
    });
  }

  for (let run = 1; run <= runs; run++) {
    const isBusy = run % 2 === 0;
    it(`prove raises no false alarm on ${isBusy ? "a busy" : "an idle"} server (run ${run})`, async () => {
      const load = isBusy ? startLoad(server()) : null;
      const { code, report } = await prove(server().home, "--with-canary");
      await load?.end();
      expect([code, report.reason, listFailures({ code, report })]).to.deep.equal([0, null, []]);
    });
  }

  it("prove --lock leaves a locked vault locked, with each state looked at", async function () {
    needs(this, rounds > 1, "STRONGROOM_PROVE_ROUNDS");
    await mustLock(server());
    const proven = await prove(server().home, "--lock");
    expect(attackerFound(proven)).to.deep.equal(["unlocked 1", "locked 0", "unlocked 1"]);
    expect((await mustStatus(server()))["locked"]).to.equal(true);
  });

  describe("--challenge", () => {
    const run = async (given: StringIoOptions) => {
      const env = environment({ STRONGROOM_HOME: server().home });
      const io = stringIo({ env, sleep: () => new Promise(() => {}), ...given });
      await runCommandLine(["prove", "--challenge", "--as-attacker", "--json"], io);
      return { code: io.exitCode, ...io.printed() };
    };
    const left = async () => {
      return mustSucceed(await send(server(), { path: "/v1/secrets?prefix=strongroom-prove/" }))["entries"];
    };

    it("prove --challenge shows after Enter a value that only the control holds, and deletes it", async () => {
      const { code, stdout, stderr } = await run({ input: Buffer.from("\n") });
      const { checks } = JSON.parse(stdout) as Report;
      const followed = checks.filter(({ step }) => step === "canary").map(({ state, holds }) => [state, holds]);
      expect([code, followed]).to.deep.equal([
        0,
        [
          [null, true],
          ["unlocked", true],
        ],
      ]);
      const [announced = "", shown = ""] = stderr.split("The value was");
      const [, hash] = /^ {2}([0-9a-f]{64})$/m.exec(announced) ?? [];
      const [, value = ""] = /^ {2}([\w-]{32})$/m.exec(shown) ?? [];
      expect(createHash("sha256").update(value).digest("hex")).to.equal(hash);
      expect(announced).to.contain(`gcore -a -o server ${server().child.pid}`).and.not.contain(value);
      expect(await left()).to.deep.equal([]);
    });

    it("prove --challenge ends after ten minutes, and names the value that a locked vault keeps", async () => {
      const sleep = async (ms: number) => {
        expect(ms).to.equal(600_000);
        await mustLock(server());
      };
      const { code, stdout } = await run({ sleep });
      const { reason } = JSON.parse(stdout) as Report;
      const [, path = ""] =
        /^the vault was locked during .* strongroom rm (strongroom-prove\/\w+)$/.exec(reason ?? "") ?? [];
      expect(code).to.equal(13);
      await mustUnlock(server());
      mustSucceed(await send(server(), { method: "DELETE", path: secretTarget(path) }));
    });

    it("prove --challenge deletes the value after an interruption, and exits 13", async () => {
      const events = new EventEmitter();
      const sleep = () => new Promise<void>(() => setImmediate(() => events.emit("SIGINT")));
      const { code, stderr } = await run({ events, sleep });
      expect([code, await left()]).to.deep.equal([13, []]);
      expect(stderr).to.contain("the challenge was interrupted: its value was deleted");
    });

    it("prove --challenge needs an unlocked vault", async () => {
      await mustLock(server());
      const { code, report } = await prove(server().home, "--challenge", "--as-attacker");
      expect([code, report.reason]).to.deep.equal([
        13,
        "a locked vault takes no value for --challenge: unlock it with  strongroom unlock",
      ]);
      await mustUnlock(server());
    });
  });

  describe("reasons not to look", () => {
    type Row = readonly [what: string, reason: RegExp, run: () => ReturnType<typeof prove>];
    const rows: readonly Row[] = [
      ["without a server", /start it with {2}strongroom up/, () => prove("/nonexistent-home", "--as-attacker")],
      ["with a wrong passphrase", /the passphrase does not open/, () => prove(server().home, ...wrongPassphrase())],
      ["without a header", /no such file/, () => prove(server().home, "--as-attacker", "--header", "/nonexistent")],
      ["for a missing dump", /no such file/, () => prove(server().home, "--dump", "/nonexistent")],
    ];
    for (const [what, reason, attempt] of rows) {
      it(`prove exits 13 with the reason ${what}`, async () => {
        const { code, report } = await attempt();
        expect([code, report.verdict]).to.deep.equal([13, "unknown"]);
        expect(report.reason).to.match(reason);
      });
    }

    it("prove exits 13 for a process of another user, with the command that looks as root", async function () {
      needsOtherUser(this);
      const { code, report } = await proveAsOther(server());
      expect([code, report.verdict]).to.deep.equal([13, "unknown"]);
      const [, asRoot = ""] = / {2}(sudo env .+?) {2}/.exec(report.reason ?? "") ?? [];
      const again = await executeHint(`${asRoot} --json`);
      expect(listFailures(again), asRoot).to.deep.equal([]);
      expect(again.report.verdict).to.equal("holds");
    });
  });
});

function wrongPassphrase(): string[] {
  return ["--passphrase-file", passphraseFile("a passphrase of no vault")];
}

/** As another user, with a copy of the header that it may read. */
async function proveAsOther({ home, child }: ServerProcess): Promise<Proven> {
  const header = join(temporaryDirectory(), "header.json");
  copyFileSync(join(home, "vault", "gen-1", "header.json"), header);
  for (const path of [dirname(header), header]) chmodSync(path, 0o755);
  const flags = [
    "prove",
    "--json",
    "--as-attacker",
    "--pid",
    String(child.pid),
    "--header",
    header,
    "--home",
    "/var/empty",
  ];
  const command = spawn(node, [mainFile, ...flags], { uid: otherUser, gid: otherUser, env: {}, cwd: "/" });
  const [output] = await Promise.all([buffer(command.stdout), once(command, "close")]);
  return { code: command.exitCode, report: JSON.parse(output.toString()) as Proven["report"] };
}

/** Executes a command line as root; a directory of its own, the last of PATH, has `sudo`, which changes PATH, and `strongroom`. */
async function executeHint(line: string): Promise<Proven> {
  const directory = temporaryDirectory();
  const scripts = { sudo: 'PATH=/usr/bin:/bin HOME=/root exec "$@"', strongroom: `exec ${node} ${mainFile} "$@"` };
  for (const [name, script] of Object.entries(scripts))
    writeFileSync(join(directory, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const command = spawn("sh", ["-c", line], { env: { PATH: `/usr/bin:/bin:${directory}` }, cwd: "/" });
  const [output] = await Promise.all([buffer(command.stdout), once(command, "close")]);
  return { code: command.exitCode, report: JSON.parse(output.toString()) as Proven["report"] };
}

/** Pause of a client between its requests: the normal suite needs a busy server, the long form one that is never idle. */
const pauseMs = rounds === 1 ? 250 : 0;

/** Both programs judge the same dump of each state. */
async function mustAgreeOnDumps(server: ServerProcess): Promise<void> {
  const header = join(server.vaultPath, "gen-1", "header.json");
  await untilRotated(server);
  for (const [state, master] of [
    ["unlocked", 1],
    ["locked", 0],
  ] as const) {
    if (state === "locked") await mustLock(server);
    const dump = await takeDump(server);
    const known = { "master key": master, "KEK of the passphrase": 0, passphrase: 0 };
    const expected = { attacker: master, known, code: 0 };
    const flags = ["--state", state];
    expect(await pythonDump(header, dump, ...flags), `prove.py, ${state}`).to.deep.equal(expected);
    const ours = await proveDump(header, dump, ...flags);
    const found = Object.entries(ours.known).filter(([name]) => name in known);
    expect({ ...ours, known: Object.fromEntries(found) }, state).to.deep.equal(expected);
  }
  await mustUnlock(server);
}

/** Puts, gets and batches all the time, beside rotations and new passphrase slots; a locked vault is no lost request. */
function startLoad(server: ServerProcess) {
  const lost: unknown[] = [];
  let count = 0;
  let isEnded = false;
  const must = async (request: Send): Promise<void> => {
    const { status, text } = await send(server, request);
    if (status !== 200 && status !== 403) lost.push(`${status} ${text}`);
    count++;
  };
  const work = async (client: number): Promise<void> => {
    for (let i = 0; !isEnded; i++) {
      const path = `load/${client}/${i % 10}`;
      await must({ method: "PUT", path: secretTarget(path), body: { value: `value ${i} of load` } });
      await must({ path: secretTarget(path) });
      const operations = [{ get: path }, { put: `load/${client}/batch`, value: `value ${i} of load` }];
      await must({ method: "POST", path: "/v1/batch", body: { operations } });
      if (pauseMs > 0) await sleep(pauseMs);
    }
  };
  const changeKeys = async (): Promise<void> => {
    const changes = [changing(passphrase, passphrase), rotating()]; // the same passphrase gets another salt and KEK
    for (let i = 0; !isEnded; i++) {
      const begun = performance.now();
      const { status, text } = await send(server, changes[i % 2] ?? rotating());
      if (![200, 403, 409, 503].includes(status)) lost.push(`${status} ${text}`);
      // A look needs a time without derivations, and on a busy machine all takes longer.
      const pause = 1500 + 10 * (performance.now() - begun);
      for (let waited = 0; waited < pause && !isEnded; waited += 50) await sleep(50);
    }
  };
  const all = [work(1), work(2), changeKeys()].map((each) => each.catch((error: unknown) => lost.push(error)));
  const end = async () => {
    isEnded = true;
    await Promise.all(all);
    return { lost, count };
  };
  later(async () => void (await end()));
  return { end };
}
