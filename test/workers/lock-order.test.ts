/** A lock and the requests that wait in front of it: the key worker refuses them, and wipes the key. */
import { expect } from "chai";
import { sharedBytes, startNewVault, unlockKeyWorker, verdict } from "../support/key-worker.js";
import { passphrase } from "../support/server.js";

describe("a lock of the key worker", () => {
  const costly = sharedBytes(`{"x":"${"\\\\n".repeat(2 ** 21)}","operations":[]}`);

  it("overtakes the operations in front of it, and signs the checkpoint that it carries before it wipes the key", async () => {
    const worker = await startNewVault();
    const plan = () => verdict("planned", worker.call({ op: "plan", body: costly }));
    expect(await plan()).to.equal("planned");
    const plans = Array.from({ length: 40 }, plan);
    const { signed } = await worker.call({ op: "lock", checkpoint: "t" });
    expect((await Promise.all(plans)).at(-1)).to.equal("VAULT_LOCKED");
    expect(signed).to.have.keys("key", "mac");
    expect((await worker.call({ op: "lock", checkpoint: "t" })).signed).to.equal(null);
    expect(await verdict("signed", worker.call({ op: "signCheckpoint", text: "t" }))).to.equal("VAULT_LOCKED");
  });

  it("refuses nothing after the next unlock", async () => {
    const worker = await startNewVault();
    for (let round = 0; round < 2; round++) {
      await worker.call({ op: "lock" });
      await unlockKeyWorker(worker);
      expect(await verdict("planned", worker.call({ op: "plan", body: costly }))).to.equal("planned");
    }
  });

  it("of a header that is loaded cancels the derivations that wait, so that later ones begin", async () => {
    const worker = await startNewVault();
    const bodies = Array.from({ length: 3 }, () => sharedBytes(`{"passphrase":"${passphrase}","force":true}`));
    const inits = bodies.map((body) => verdict("proposed", worker.call({ op: "init", body, logN: 10, now: 0 })));
    await worker.load(null);
    expect((await Promise.all(inits)).slice(1)).to.deep.equal(["VAULT_LOCKED", "VAULT_LOCKED"]);
    const body = sharedBytes(`{"passphrase":"${passphrase}"}`);
    expect(await verdict("proposed", worker.call({ op: "init", body, logN: 10, now: 0 }))).to.equal("proposed");
  });
});
