/** Values in the server's memory after they were replaced, restored, moved and re-sealed, searched for from outside. */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { scanProcess } from "../../tools/rig/scanner.js";
import {
  mustGet,
  mustInit,
  mustLock,
  mustPut,
  mustStatus,
  mustSucceed,
  type Send,
  send,
} from "../../tools/rig/test-client.js";
import { type VaultServer, vault } from "../../tools/rig/vault-client.js";

const passphrase = "correct horse battery staple of the scanner";
const canary = "canary-that-the-scanner-must-find";

/** Of puts over an earlier value, and a third as many of each other change. Short in the normal suite; 200 in the long form. */
const puts = Number(process.env["STRONGROOM_PUTS"] ?? 60);

/** Each secret gets a value of its own length: a block of freed memory is found again by its size. */
const paths = Array.from({ length: 12 }, (_, i) => `app/${i}`);
const shortest = 30;
const step = 15;

/** All values that were sent, and what to look for of each: nothing else has it. */
class Values {
  readonly samples = new Map<string, Buffer>([["canary", Buffer.from(canary)]]);

  /** Of the secret's own length. */
  random(path: string): string {
    const value = randomBytes(shortest + step * paths.indexOf(path)).toString("base64url");
    this.samples.set(`value ${this.samples.size} of ${path}`, Buffer.from(value.slice(0, 40)));
    return value;
  }

  objectFor(path: string): { readonly a: string; readonly b: { readonly c: string } } {
    const value = this.random(path);
    return { a: value, b: { c: value } };
  }

  textFor(path: string): string {
    return JSON.stringify(this.objectFor(path));
  }
}

describe("the server's memory, after changes of secrets", function () {
  this.timeout(0);
  before(function () {
    if (!existsSync("/proc/self/mem")) this.skip(); // only Linux lets a process be read from outside
  });

  const ways: Readonly<Record<string, (server: ServerProcess, values: Values) => Promise<void>>> = {
    "gets and puts": replaceAndGet,
    "undos, batches, moves, other metadata and a rotation": changeOtherwise,
    "writes of Vault's clients": writeThroughVaultPort,
  };
  for (const [name, change] of Object.entries(ways)) {
    it(`holds no value once the vault is locked after ${name}`, async () => {
      const settings = { STRONGROOM_SERVER_NAMES: canary, STRONGROOM_IDLE_TIMEOUT_MS: "0", STRONGROOM_VAULT_PORT: "0" };
      const server = await startProcess([], settings);
      await mustInit(server, { passphrase });
      const values = new Values();
      for (const path of paths) await mustPut(server, path, values.textFor(path));
      await change(server, values);
      await mustLock(server);
      const found = scanProcess(server.child.pid ?? 0, values.samples);
      expect(found.get("canary")?.full, "the scanner's canary").to.be.above(0);
      const left = [...found].filter(([value, { full, half }]) => value !== "canary" && full + half > 0);
      expect(left).to.deep.equal([]);
    });
  }
});

async function replaceAndGet(server: ServerProcess, values: Values): Promise<void> {
  for (let n = 0; n < puts; n += paths.length) {
    for (const path of paths) {
      await mustPut(server, path, values.textFor(path));
      for (let i = 0; i < 3; i++) await mustGet(server, path);
    }
  }
}

async function changeOtherwise(server: ServerProcess, values: Values): Promise<void> {
  for (let n = 0; n < puts / 3; n += paths.length) {
    for (const path of paths) await changeInEachWay(server, path, values);
  }
  mustSucceed(await send(server, { method: "POST", path: "/v1/rotate", body: { passphrase, keys: [] } }));
  while ((await mustStatus(server))["rotation"] !== undefined) await sleep(10);
}

async function changeInEachWay(server: ServerProcess, path: string, values: Values): Promise<void> {
  const before = (await mustGet(server, path))["version"];
  const batch = (operation: object): Send => ({ method: "POST", path: "/v1/batch", body: { operations: [operation] } });
  const description = `not secret: ${values.samples.size}`;
  const requests: readonly Send[] = [
    batch({ put: path, value: values.textFor(path) }),
    { method: "PATCH", path: `/v1/metadata/${path}`, body: { description } },
    { path: `/v1/versions/${path}?version=${before}` },
    { method: "POST", path: `/v1/versions/${path}`, body: { version: before } },
    batch({ copy: path, to: `${path}/copy` }),
    batch({ delete: `${path}/copy` }),
    batch({ move: path, to: `${path}/moved` }),
    batch({ move: `${path}/moved`, to: path }),
  ];
  for (const request of requests) mustSucceed(await send(server, request));
}

async function writeThroughVaultPort(server: ServerProcess, values: Values): Promise<void> {
  const port: VaultServer = { ...server, vaultPort: Number((await mustStatus(server))["vaultPort"]) };
  for (let n = 0; n < puts / 3; n += paths.length) {
    for (const path of paths) {
      const own = `secret/data/${path}`;
      const change = { b: { d: values.random(path) } };
      expect((await vault(port, "POST", own, { body: { data: values.objectFor(path) } })).status).to.equal(200);
      const before = await vault(port, "GET", own);
      expect((await vault(port, "PATCH", own, { body: { data: change } })).status).to.equal(200);
      const query = `?version=${before.json.data.metadata.version}`;
      expect((await vault(port, "GET", own + query)).status).to.equal(200);
      expect((await vault(port, "GET", `secret/subkeys/${path}`)).status).to.equal(200);
    }
  }
}
