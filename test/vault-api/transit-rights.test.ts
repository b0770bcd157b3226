/** Rights of client tokens on transit keys: on the port for Vault's clients as natively, for every scope and place. */
import { expect } from "chai";
import type { Scope } from "../../src/access/scopes.js";
import { scopes } from "../../src/contract/names.js";
import { shared } from "../../tools/rig/clean-up.js";
import { uncached } from "../../tools/rig/server.js";
import { mustCreateToken, mustSucceed, send } from "../../tools/rig/test-client.js";
import { startVaultServer, vault } from "../../tools/rig/vault-client.js";
import { heldFiles } from "../support/held-files.js";

const message = "aGVsbG8=";

/** A request in both forms; `NAME` stands for the key's. */
type Row = { readonly method: string; readonly vault: string; readonly native: string; readonly body: object };

function post(path: string, body: object, native = path): Row {
  return { method: "POST", vault: `transit/${path}`, native: `transit/${native}`, body };
}

function on(use: string, body: object): Row {
  return { method: "POST", vault: `transit/${use}/NAME`, native: `transit/${use}/transit/NAME`, body };
}

const signature = `vault:v1:${"A".repeat(86)}==`;
const keys = { vault: "transit/keys/NAME", native: "transit/keys/transit/NAME", body: {} };
const rows: readonly Row[] = [
  { ...keys, method: "GET" },
  ...["rotate", "config"].map((what) => ({
    ...{ method: "POST", vault: `${keys.vault}/${what}`, native: `${keys.native}/${what}`, body: {} },
  })),
  { ...keys, method: "DELETE" },
  on("encrypt", { plaintext: message }),
  on("decrypt", { ciphertext: "vault:v1:AAAA" }),
  on("rewrap", { ciphertext: "vault:v1:AAAA" }),
  on("sign", { input: message }),
  on("verify", { input: message, signature }),
  on("hmac", { input: message }),
  { ...on("datakey", {}), vault: "transit/datakey/wrapped/NAME" },
  { ...on("export", {}), method: "GET", vault: "transit/export/encryption-key/NAME" },
  post("random", {}),
];

describe("rights to transit keys", () => {
  const server = shared(async () => {
    const started = await startVaultServer();
    for (const name of ["in/aes", "in/ed", "out/aes"]) {
      const type = name.endsWith("ed") ? "ed25519" : "aes256-gcm96";
      mustSucceed(await send(started, { method: "POST", path: `/v1/transit/keys/transit/${name}`, body: { type } }));
    }
    return started;
  });

  async function statuses(row: Row, name: string, token: string): Promise<readonly [number, number]> {
    const { method, body } = row;
    const request = { token, ...(method === "POST" && { body }) };
    const here = await vault(server(), method, row.vault.replace("NAME", name), request);
    const path = `/v1/${row.native.replace("NAME", name)}`;
    return [here.status, (await send(server(), { method, path, ...request })).status];
  }

  const oracle = async (can: Scope, token: string, names: readonly string[]) => {
    for (const row of rows) {
      for (const name of names) {
        const [here, natively] = await statuses(row, name, token);
        const what = `${can}: ${row.method} ${row.vault} ${name}: ${here}, natively ${natively}`;
        expect(here === 403, what).to.equal(natively === 403);
        if (natively < 300) expect(here, what).to.be.below(300);
      }
    }
  };

  for (const can of scopes) {
    it(`a token that can ${can} gets 403 where it does natively, inside of its paths and outside`, async () => {
      const { token } = await mustCreateToken(server(), { name: `of-${can}`, can: [can], paths: ["transit/in/"] });
      await oracle(can, token, ["in/aes", "in/ed", "in/none", "out/aes", "out/none"]);
    });

    it(`a child of a token that can ${can} has the same rights`, async () => {
      const { token } = await mustCreateToken(server(), { name: `parent-${can}`, can: [can], paths: ["transit/in/"] });
      const made = await vault(server(), "POST", "auth/token/create", { token, body: {} });
      await oracle(can, made.json.auth.client_token, ["in/aes", "out/aes"]);
    });
  }

  it("a key outside of a token's paths and one that does not exist get the same response", async () => {
    const { token } = await mustCreateToken(server(), {
      name: "blind",
      can: ["encrypt", "sign"],
      paths: ["transit/in/"],
    });
    const ask = async (name: string) => {
      const answer = await vault(server(), "POST", `transit/encrypt/${name}`, { token, body: { plaintext: message } });
      return [answer.status, answer.text];
    };
    expect(await ask("out/aes")).to.deep.equal(await ask("out/none"));
    const { keys: listed } = (await vault(server(), "LIST", "transit/keys", { token })).json.data;
    expect(listed).to.deep.equal(["in/aes", "in/ed"]);
  });
});

describe("a replaced root token", () => {
  const requests = {
    "an export": { method: "GET", path: "transit/export/signing-key/held/key" },
    "a key that exists already": { method: "POST", path: "transit/keys/held/key" },
  };
  for (const [name, { method, path }] of Object.entries(requests))
    it(`a root token that is replaced while storage reads does not get ${name}`, async () => {
      const { files, hold } = heldFiles();
      const server = await startVaultServer({ files, ...uncached });
      await vault(server, "POST", "transit/keys/held/key", { body: { type: "ed25519", exportable: true } });
      const { reached, release } = hold("/held/");
      const late = vault(server, method, path, method === "POST" ? { body: {} } : {});
      await reached;
      mustSucceed(await send(server, { method: "POST", path: "/v1/tokens/root" }));
      release();
      expect((await late).status).to.equal(403);
    });
});
