/** Values and texts of keys in the server's memory after they were sent over TCP, searched for from outside. */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { scanProcess } from "../../tools/rig/scanner.js";
import { mustGet, mustInit, mustLock, mustPut, mustStatus, mustSucceed, send } from "../../tools/rig/test-client.js";
import { type VaultServer, vault } from "../../tools/rig/vault-client.js";
import { mustCreateKey } from "../support/key-requests.js";

const passphrase = "correct horse battery staple of the scanner";
const canary = "canary-that-the-scanner-must-find";

/** Of a value each, and as many again in batches and of versions. Short in the normal suite; 200 in the long form. */
const gets = Number(process.env["STRONGROOM_GETS"] ?? 40);

/** Small ones, one that is sent by itself, and one whose escapes make it longer. */
const values = new Map([
  ...Array.from({ length: 8 }, (_, i) => [`small/${i}`, randomBytes(36).toString("base64url")] as const),
  ["large", randomBytes(40_000).toString("base64url")],
  ["larger", randomBytes(150_000).toString("base64url")],
  ["lines", Array.from({ length: 20 }, () => `${randomBytes(36).toString("base64url")}\n`).join("")],
]);

/** What to look for of a value: no escape is in it, and nothing else has it. */
function sampleOf(value: string): Buffer {
  return Buffer.from(value.slice(0, 40));
}

describe("the server's memory, after responses with values and keys over TCP", function () {
  this.timeout(0);
  before(function () {
    if (!existsSync("/proc/self/mem")) this.skip(); // only Linux lets a process be read from outside
  });

  it("holds none of them, neither while the vault is unlocked nor once it is locked", async () => {
    const settings = { STRONGROOM_SERVER_NAMES: canary, STRONGROOM_IDLE_TIMEOUT_MS: "0", STRONGROOM_VAULT_PORT: "0" };
    const server = await startProcess([], settings);
    await mustInit(server, { passphrase });
    for (const [path, value] of values) await mustPut(server, path, value);
    const paths = [...values.keys()];
    for (let n = 0; n < gets; n++) await mustGet(server, paths[n % paths.length] ?? "");
    for (let n = 0; n < gets; n += paths.length) {
      const operations = paths.map((path) => ({ get: path }));
      mustSucceed(await send(server, { method: "POST", path: "/v1/batch", body: { operations } }));
      for (const path of paths) mustSucceed(await send(server, { path: `/v1/versions/${path}?version=1` }));
    }
    await throughVaultPort({ ...server, vaultPort: Number((await mustStatus(server))["vaultPort"]) });
    const samples = [...values].map(([path, value]) => [path, sampleOf(value)] as const);
    expect(await leftWhenIdle(server, samples), "while unlocked").to.deep.equal([]);
    const { key } = await mustCreateKey(server, "recovery", passphrase);
    await mustLock(server);
    expect(leftIn(server, [...samples, ["key", Buffer.from(key)]])).to.deep.equal([]);
  });
});

function leftIn({ child }: ServerProcess, samples: readonly (readonly [string, Buffer])[]): string[] {
  const found = scanProcess(child.pid ?? 0, new Map([...samples, ["canary", Buffer.from(canary)]]));
  expect(found.get("canary")?.full, "the scanner's canary").to.be.above(0);
  return [...found].flatMap(([name, { full, half }]) =>
    name !== "canary" && full + half > 0 ? [`${name}: ${full} and ${half} halves`] : [],
  );
}

/** Looks again a few times, since a response that has arrived may not be wiped yet. */
async function leftWhenIdle(...of: Parameters<typeof leftIn>): Promise<string[]> {
  let left = leftIn(...of);
  for (let look = 1; left.length > 0 && look < 20; look++) {
    await sleep(100);
    left = leftIn(...of);
  }
  return left;
}

/** Writes, patches and reads all values as clients of Vault do, as texts and as members of objects. */
async function throughVaultPort(server: VaultServer): Promise<void> {
  for (const [path, value] of values) {
    const own = `secret/data/vault/${path}`;
    expect((await vault(server, "POST", own, { body: { data: { value } } })).status).to.equal(200);
    expect((await vault(server, "POST", own, { body: { data: { a: value, b: { c: value } } } })).status).to.equal(200);
    expect((await vault(server, "PATCH", own, { body: { data: { b: { d: "1" } } } })).status).to.equal(200);
    for (const query of ["", "?version=2"]) {
      expect((await vault(server, "GET", `${own}${query}`)).text).to.contain(value.slice(0, 40));
    }
    expect((await vault(server, "GET", `secret/subkeys/vault/${path}`)).status).to.equal(200);
  }
}
