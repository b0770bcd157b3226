/** A lock and the requests that wait in front of it: the key worker refuses them, and wipes the key. */
import { expect } from "chai";
import type { KeyWorker } from "../../src/vault/key-worker.js";
import { passphrase } from "../../tools/rig/server.js";
import { sharedBytes, startNewVault, unlockKeyWorker, verdict } from "../support/key-worker.js";

describe("locks of the key worker", () => {
  const costly = sharedBytes(`{"x":"${"\\\\n".repeat(20_000)}","operations":[]}`);

  it("a lock overtakes the operations in front of it, and signs its checkpoint before it wipes the key", async () => {
    const worker = await startNewVault();
    const plan = () => verdict("planned", worker.call({ op: "plan", body: costly }));
    expect(await plan()).to.equal("planned");
    const plans = Array.from({ length: 2_000 }, plan);
    const { signed } = await worker.call({ op: "lock", checkpoint: "t" });
    expect((await Promise.all(plans)).at(-1)).to.equal("VAULT_LOCKED");
    expect(signed).to.have.keys("key", "mac");
    expect((await worker.call({ op: "lock", checkpoint: "t" })).signed).to.equal(null);
    expect(await verdict("signed", worker.call({ op: "signCheckpoint", text: "t" }))).to.equal("VAULT_LOCKED");
  });

  it("a lock refuses nothing after the next unlock", async () => {
    const worker = await startNewVault();
    for (let round = 0; round < 2; round++) {
      await worker.call({ op: "lock" });
      await unlockKeyWorker(worker);
      expect(await verdict("planned", worker.call({ op: "plan", body: costly }))).to.equal("planned");
    }
  });

  it("a load of a header cancels the derivations that wait, so that later ones begin", async () => {
    const worker = await startNewVault();
    const bodies = Array.from({ length: 3 }, () => sharedBytes(`{"passphrase":"${passphrase}","force":true}`));
    const inits = bodies.map((body) => verdict("proposed", worker.call({ op: "init", body, logN: 10, now: 0 })));
    await worker.load(null);
    expect((await Promise.all(inits)).slice(1)).to.deep.equal(["VAULT_LOCKED", "VAULT_LOCKED"]);
    const body = sharedBytes(`{"passphrase":"${passphrase}"}`);
    expect(await verdict("proposed", worker.call({ op: "init", body, logN: 10, now: 0 }))).to.equal("proposed");
  });
});

describe("requests with large bodies", () => {
  const plan = (worker: KeyWorker) =>
    worker.call({ op: "plan", body: sharedBytes(`{"x":"${"a".repeat(2 ** 20)}","operations":[]}`) });

  it("large bodies go to the key worker one at a time, so that other requests wait for one of them at most", async () => {
    const worker = await startNewVault();
    const order: string[] = [];
    const plans = Array.from({ length: 8 }, () => plan(worker).then(() => order.push("plan")));
    await worker.call({ op: "keys" }).then(() => order.push("keys"));
    await Promise.all(plans);
    expect(order.indexOf("keys")).to.be.at.most(1);
    expect(order).to.have.lengthOf(9);
  });

  it("large bodies are refused by a lock that comes before their turn", async () => {
    const worker = await startNewVault();
    const plans = Array.from({ length: 8 }, () => verdict("planned", plan(worker)));
    const locked = worker.call({ op: "lock" });
    expect((await Promise.all(plans)).slice(1)).to.deep.equal(Array(7).fill("VAULT_LOCKED"));
    await locked;
    await unlockKeyWorker(worker);
    expect(await verdict("planned", plan(worker))).to.equal("planned");
  });

  it("large bodies are refused, and do not block later ones, when the thread is stopped", async () => {
    const worker = await startNewVault();
    const plans = Array.from({ length: 3 }, () => verdict("planned", plan(worker)));
    await worker.stop();
    expect(await Promise.all(plans)).to.deep.equal(Array(3).fill("VAULT_LOCKED"));
    expect(await verdict("planned", plan(worker))).to.equal("UNAVAILABLE");
  });
});
