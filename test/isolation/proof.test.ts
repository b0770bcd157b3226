/** Proof that the isolation tests can fail: the scanner finds what is there, and catches a naive server. */
import { spawn } from "node:child_process";
import { scryptSync } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { expect } from "chai";
import { compareServers, startNaive } from "../../tools/demo/control.js";
import { later } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { scanProcess } from "../../tools/rig/scanner.js";

describe("the scanner", function () {
  this.timeout(0);
  before(function () {
    needs(this, existsSync("/proc/self/mem"), "/proc/self/mem");
  });

  it("the scanner counts copies in every form, and none of bytes that the process does not hold", async () => {
    const script = `
      const secret = Buffer.from(process.argv[1], "hex");
      globalThis.kept = [secret, Buffer.from(secret), secret.toString("base64"), secret.subarray(0, 16).toString("latin1")];
      process.argv[1] = "";
      globalThis.half = Buffer.from(secret.subarray(0, 16));
      console.log("ready");
      setInterval(() => {}, 1000);`;
    const secret = Buffer.from(Array.from({ length: 32 }, (_, i) => (i * 37 + 11) & 255));
    const child = spawn(process.execPath, ["-e", script, secret.toString("hex")]);
    later(() => void child.kill("SIGKILL"));
    await once(child.stdout, "data");
    const wanted = new Map([
      ["secret", secret],
      ["absent", Buffer.from(secret.map((byte) => byte ^ 0x5a))],
    ]);
    const found = scanProcess(child.pid ?? 0, wanted);
    expect(found.get("secret")?.full).to.be.at.least(3);
    expect(found.get("secret")?.half).to.be.at.least(1);
    expect(found.get("absent")).to.deep.equal({ full: 0, half: 0 });
  });

  it("the scanner finds passphrase and key in a naive server after its lock", async () => {
    const { pid, call } = await startNaive();
    const passphrase = "the passphrase of a naive server";
    await call("POST", "/unlock", { passphrase });
    await call("PUT", "/secrets/a", { value: "a value" });
    await call("POST", "/lock");
    const key = scryptSync(passphrase, "salt", 32);
    const wanted = new Map<string, Uint8Array>([
      ["passphrase", Buffer.from(passphrase)],
      ["key", key],
    ]);
    const found = scanProcess(pid, wanted);
    expect(found.get("passphrase")?.full).to.be.above(0);
    expect(found.get("key")?.full).to.be.above(0);
  });

  it("the scanner of prove finds secrets in a naive server, and in ours only the key, until a lock", async () => {
    const rows = await compareServers();
    expect(rows.map(({ expected, ours }) => [expected, ours])).to.deep.equal([
      [0, 0],
      [1, 1],
      [0, 0],
    ]);
    expect(rows.filter(({ naive, holds }) => naive === 0 || !holds)).to.deep.equal([]);
  });
});
