/** Changes of the header on a disk that fails at any step: the old or the new way in opens the vault, also after a restart. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import type { Observer } from "../../src/observer.js";
import { decodeKeys, headerText } from "../../tools/rig/decoder.js";
import { passphrase, restarted, startTestServer, type TestServer } from "../../tools/rig/server.js";
import {
  mustGet,
  mustInit,
  mustLock,
  mustPut,
  mustStatus,
  mustSucceed,
  mustUnlock,
  send,
} from "../../tools/rig/test-client.js";
import { crashKeyWorkers } from "../support/crash-key-worker.js";
import { type FailingFiles, failingFiles } from "../support/failing-files.js";
import { heldFiles } from "../support/held-files.js";
import {
  changing,
  creating,
  deleting,
  formatOutcome,
  mustCreateKey,
  mustListKeys,
  rotating,
  unlockWith,
} from "../support/key-requests.js";
import { FakeClock } from "../support/manual-clock.js";

const another = "another passphrase";

/** More than any change has: at the last k, no fault occurs. */
const mostSteps = 12;

type Failing = { readonly server: TestServer; readonly faults: FailingFiles; readonly clock: FakeClock };

async function startFailing(): Promise<Failing> {
  const [faults, clock] = [failingFiles(), new FakeClock()];
  const server = await startTestServer({ files: faults.files, clock, idleTimeoutMs: 0 });
  await mustInit(server);
  await mustPut(server, "a", "kept");
  return { server, faults, clock };
}

/** Which of the texts open the vault. */
async function opening(server: TestServer, texts: readonly string[]): Promise<string[]> {
  const outcomes: string[] = [];
  for (const text of texts) outcomes.push(formatOutcome(await send(server, unlockWith(text))));
  for (const outcome of outcomes) expect(outcome).to.be.oneOf(["200", "401 UNAUTHORIZED"]);
  expect((await mustGet(server, "a"))["value"]).to.equal("kept");
  return texts.filter((_, i) => outcomes[i] === "200");
}

/** Which of the passphrases open the header on disk, which the next start reads: the second decoder says. */
function openingOnDisk(server: TestServer, passphrases: readonly string[]): string[] {
  return passphrases.filter((text) => {
    try {
      return decodeKeys(server.home, text).masterKey.length === 32;
    } catch {
      return false;
    }
  });
}

/** Nothing is left beside the header, and a restarted server opens what the running one opened. */
async function sameAfterRestart(server: TestServer, opener: string): Promise<void> {
  const again = await restarted(server);
  await mustUnlock(again, opener);
  expect((await mustGet(again, "a"))["value"]).to.equal("kept");
  const left = readdirSync(join(again.home, "vault", "gen-1"));
  expect(left.sort()).to.deep.equal(["header.json", "secrets"]);
}

describe("changes of the header with a fault at the k-th file operation", function () {
  this.timeout(0);

  for (const fault of ["EIO", "SHORT"] as const) {
    it(`a failed change (${fault}) leaves the old passphrase or the new one, a successful one the new one`, async () => {
      const { server, faults, clock } = await startFailing();
      let current = passphrase;
      const occurred = [];
      for (let k = 1; k <= mostSteps; k++) {
        faults.failOnce(k, fault);
        const next = `passphrase ${k}`;
        const outcome = formatOutcome(await send(server, changing(current, next)));
        occurred.push(faults.repair());
        expect(outcome).to.be.oneOf(["200", "503 UNAVAILABLE"]);
        const left = await opening(server, [current, next]);
        expect(left).to.have.lengthOf(1);
        expect(openingOnDisk(server, [current, next])).to.deep.equal(left);
        if (outcome === "200") expect(left).to.deep.equal([next]);
        current = left[0] ?? "";
        clock.advance(60_000); // the lockout forgets the wrong one
      }
      expect([occurred[0], occurred.at(-1)]).to.deep.equal([true, false]);
      await sameAfterRestart(server, current);
    });
  }

  it("a failed creation leaves the new key or none, and the passphrase", async () => {
    const { server, faults } = await startFailing();
    const texts = [passphrase];
    const occurred = [];
    let most = 1;
    for (let k = 1; k <= mostSteps; k++) {
      faults.failOnce(k, "EIO");
      const answer = await send(server, creating(`recovery ${k}`));
      occurred.push(faults.repair());
      const { length } = await mustListKeys(server);
      expect(length).to.be.oneOf(answer.status === 200 ? [most + 1] : [most, most + 1]);
      most = length;
      if (answer.status === 200) texts.push(String(answer.json["key"]));
    }
    expect([occurred[0], occurred.at(-1)]).to.deep.equal([true, false]);
    expect(await opening(server, texts)).to.deep.equal(texts);
    for (const text of texts.slice(-1)) await sameAfterRestart(server, text);
  });

  it("a failed deletion leaves the key or deletes it, and leaves the passphrase", async () => {
    const { server, faults, clock } = await startFailing();
    const occurred = [];
    for (let k = 1; k <= mostSteps; k++) {
      const { id, key } = await mustCreateKey(server, `recovery ${k}`);
      faults.failOnce(k, "EIO");
      const { status } = await send(server, deleting(id));
      occurred.push(faults.repair());
      const left = await opening(server, [passphrase, key]);
      expect(left).to.deep.equal(status === 200 ? [passphrase] : [passphrase, ...left.slice(1)]);
      expect(headerText(server.home).includes(id)).to.equal(left.length > 1);
      clock.advance(60_000);
    }
    expect([occurred[0], occurred.at(-1)]).to.deep.equal([true, false]);
    await sameAfterRestart(server, passphrase);
  });
});

describe("a change of the header with a crash of the key worker before the write", () => {
  /** A put holds the change up until `release`; `derived` resolves once the key worker has proposed so many. */
  async function startHeld() {
    const { files, hold } = heldFiles();
    let derivations = 0;
    const observer: Observer = { derivationEnded: () => derivations++ };
    const server = await startTestServer({ files, observer });
    await mustInit(server);
    await mustPut(server, "a", "kept");
    const before = derivations;
    const { reached, release } = hold("/secrets");
    const put = send(server, { method: "PUT", path: "/v1/secrets/held", body: { value: "held" } });
    await reached;
    const derived = async (count: number) => {
      while (derivations < before + count) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    const crash = async () => {
      await crashKeyWorkers();
      while (!server.logged().includes("key-worker-ended")) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    return { server, put, release, derived, crash };
  }

  it("every key whose creation succeeded stays, also when another is created at the same time", async () => {
    const { server, put, release, derived, crash } = await startHeld();
    const first = send(server, creating("first"));
    await derived(1);
    await crash();
    const second = send(server, creating("second"));
    await derived(2);
    release();
    const answers = await Promise.all([first, second]);
    await put;
    expect(answers.map(formatOutcome)).to.include("200");
    const texts = answers.flatMap(({ status, json }) => (status === 200 ? [String(json["key"])] : []));
    expect(await opening(server, texts)).to.deep.equal(texts);
    await sameAfterRestart(server, passphrase);
  });

  it("nothing of the new vault is sealed under the key of another", async () => {
    const { server, put, release, derived, crash } = await startHeld();
    const init = send(server, { method: "POST", path: "/v1/init", body: { passphrase: another, force: true } });
    await derived(1);
    await crash();
    const unlock = send(server, unlockWith(passphrase));
    await derived(2);
    const rotate = send(server, rotating());
    await derived(3);
    release();
    const outcomes = (await Promise.all([put, init, unlock, rotate])).map(formatOutcome);
    const current = outcomes[1] === "200" ? another : passphrase;
    await mustUnlock(server, current);
    await mustPut(server, "b", "later");
    const again = await restarted(server);
    await mustUnlock(again, current);
    expect((await mustGet(again, "b"))["value"]).to.equal("later");
  });
});

describe("changes of the passphrase", () => {
  it("a new passphrase holds when the key worker crashes during the write, which leaves the vault locked", async () => {
    const { files, hold } = heldFiles();
    const server = await startTestServer({ files });
    await mustInit(server);
    await mustPut(server, "a", "kept");
    const { reached, release } = hold("/gen-1/");
    const change = send(server, changing(passphrase, another));
    await reached;
    await crashKeyWorkers();
    while (!server.logged().includes("key-worker-ended")) await new Promise((resolve) => setTimeout(resolve, 10));
    release();
    mustSucceed(await change);
    expect((await mustStatus(server))["locked"]).to.equal(true);
    expect(await opening(server, [passphrase, another])).to.deep.equal([another]);
  });

  it("a new passphrase holds when a lock comes during the write, and the vault is locked", async () => {
    const { files, hold } = heldFiles();
    const server = await startTestServer({ files });
    await mustInit(server);
    await mustPut(server, "a", "kept");
    const { reached, release } = hold("/gen-1/");
    const change = send(server, changing(passphrase, another));
    await reached;
    const lock = mustLock(server);
    release();
    mustSucceed(await change);
    await lock;
    expect((await mustStatus(server))["locked"]).to.equal(true);
    expect(await opening(server, [passphrase, another])).to.deep.equal([another]);
  });

  it("ten concurrent changes of the passphrase leave exactly one", async () => {
    const server = await startTestServer();
    await mustInit(server);
    await mustPut(server, "a", "kept");
    const next = Array.from({ length: 10 }, (_, n) => `passphrase ${n}`);
    const answers = await Promise.all(next.map((text) => send(server, changing(passphrase, text))));
    const changed = next.filter((_, i) => answers[i]?.status === 200);
    expect(changed).to.have.lengthOf(1);
    expect(answers.filter(({ status }) => status !== 200).every(({ status }) => status === 401)).to.equal(true);
  });

  it("a change of the passphrase disturbs no reads and writes of secrets", async () => {
    const server = await startTestServer();
    await mustInit(server);
    const writes = Array.from({ length: 40 }, (_, n) => mustPut(server, `w${n}`, "v"));
    mustSucceed(await send(server, changing(passphrase, another)));
    await Promise.all(writes);
    for (let n = 0; n < 40; n++) expect((await mustGet(server, `w${n}`))["value"]).to.equal("v");
  });
});
