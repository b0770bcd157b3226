/** Rights of tokens in the KV engine: the native API is the oracle for each scope, path and operation, also for tokens made of others. */
import { expect } from "chai";
import type { Scope } from "../../src/access/scopes.js";
import { scopes } from "../../src/contract/names.js";
import { shareTestServer } from "../../tools/rig/server.js";
import { mustCreateToken, mustInit, mustPut, mustSucceed, mustUnlock, send } from "../../tools/rig/test-client.js";
import { type VaultServer, vault, withPort } from "../../tools/rig/vault-client.js";

type Asked = { readonly method: string; readonly at: string; readonly body?: object };

/** `P` stands for the path, in both forms. */
type Row = { readonly here: Asked; readonly native: Asked };

const row = (here: Asked, native: Asked): Row => ({ here, native });
const get = { method: "GET", at: "secrets/P" };
const put = { method: "PUT", at: "secrets/P", body: { value: "1" } };
const remove = { method: "DELETE", at: "secrets/P" };
const describeIt = { method: "PATCH", at: "metadata/P", body: { type: "password" } };
const data = { data: { value: "1" } };
const versions = { versions: [9] };
const settings = { max_versions: 5 };

const rows: readonly Row[] = [
  row({ method: "GET", at: "data/P" }, get),
  row({ method: "GET", at: "data/P?version=1" }, { method: "GET", at: "versions/P?version=1" }),
  row({ method: "GET", at: "subkeys/P" }, get),
  row({ method: "POST", at: "data/P", body: data }, put),
  row({ method: "PUT", at: "data/P", body: data }, put),
  row({ method: "PATCH", at: "data/P", body: data }, put),
  row({ method: "DELETE", at: "data/P" }, remove),
  row({ method: "POST", at: "delete/P", body: versions }, remove),
  row({ method: "POST", at: "undelete/P", body: versions }, { method: "POST", at: "versions/P", body: { version: 1 } }),
  row({ method: "PUT", at: "destroy/P", body: versions }, { method: "DELETE", at: "versions/P?version=9" }),
  row({ method: "GET", at: "metadata/P" }, { method: "GET", at: "versions/P" }),
  row({ method: "POST", at: "metadata/P", body: settings }, describeIt),
  row({ method: "PATCH", at: "metadata/P", body: settings }, describeIt),
  row({ method: "DELETE", at: "metadata/P" }, { method: "POST", at: "trash/P" }),
  row({ method: "LIST", at: "metadata/P" }, { method: "GET", at: "secrets?prefix=P/" }),
  row({ method: "GET", at: "metadata/P?list=true" }, { method: "GET", at: "secrets?prefix=P/" }),
];

const removes = (method: string) => method === "DELETE" || method === "POST";

describe("rights in the KV engine", () => {
  const shared = shareTestServer({ vaultPort: 0 }, async (server) => {
    await mustInit(server);
    for (const path of ["in/x", "out/x", "other/folder/x"]) await mustPut(server, path, "1");
  });
  const server = (): VaultServer => withPort(shared());

  /** Creates a token, a child of it, and a token of a login with its name and value. */
  async function createTokens(can: Scope): Promise<readonly string[]> {
    const name = `only-${can}`;
    const { token } = await mustCreateToken(server(), { name, can: [can], paths: ["in/"] });
    const child = await vault(server(), "POST", "auth/token/create", { token, body: {} });
    const credentials = { role_id: name, secret_id: token };
    const login = await vault(server(), "POST", "auth/approle/login", { token: null, body: credentials });
    return [token, child.json.auth.client_token, login.json.auth.client_token];
  }

  async function mustAgree({ here, native }: Row, path: string, token: string): Promise<void> {
    const withBody = ({ body }: Asked) => ({ token, ...(body && { body }) });
    const found = await vault(server(), here.method, `secret/${here.at.replace("P", path)}`, withBody(here));
    if (removes(here.method) && path === "in/x") await mustPut(server(), path, "1");
    const request = { method: native.method, path: `/v1/${native.at.replace("P", path)}`, ...withBody(native) };
    const wanted = await send(server(), request);
    const what = `${here.method} ${here.at} of ${path}: ${found.status} ${found.text}, natively ${wanted.status}`;
    expect(found.status === 403, what).to.equal(wanted.status === 403);
    if (removes(native.method) && path === "in/x") await mustPut(server(), path, "1");
  }

  const ofSecrets: readonly Scope[] = ["list", "get", "put", "delete"];

  async function mustAgreeOnAll(can: Scope): Promise<void> {
    const [own = "", ...derived] = await createTokens(can);
    const paths = ofSecrets.includes(can) ? ["in/x", "in/none", "out/x", "out/none"] : ["in/x"];
    const asked = paths.map((path) => [path, own] as const);
    for (const token of derived) asked.push(...paths.slice(0, 3).map((path) => [path, token] as const));
    for (const each of rows) for (const [path, token] of asked) await mustAgree(each, path, token);
  }

  for (const can of scopes) {
    it(`KV rights of a token with ${can} are the native ones, inside of its paths and outside`, () =>
      mustAgreeOnAll(can));
  }

  for (const can of ["lock", "unlock", "get"] as const) {
    it(`rights of a token with ${can} to lock and unlock are the native ones`, async () => {
      const { token } = await mustCreateToken(server(), { name: `sys-${can}`, can: [can] });
      const post = (path: string, body: object) => send(server(), { method: "POST", path, body, token });
      const unseal = await vault(server(), "PUT", "sys/unseal", { token, body: { key: "wrong" } });
      expect(unseal.status === 403).to.equal((await post("/v1/unlock", { passphrase: "wrong" })).status === 403);
      const seal = await vault(server(), "PUT", "sys/seal", { token });
      if (can === "lock") await mustUnlock(server());
      expect(seal.status === 403).to.equal((await post("/v1/lock", {})).status === 403);
      if (can === "lock") await mustUnlock(server());
    });
  }

  it("the list of mounts shows other folders only to a token that can list", async () => {
    for (const can of scopes) {
      const { token } = await mustCreateToken(server(), {
        name: `mounts-${can}`,
        can: [can],
        paths: ["in/", "mine/a"],
      });
      const { token: everywhere } = await mustCreateToken(server(), { name: `every-${can}`, can: [can] });
      const mounts = async (of: string) => {
        const plain = Object.keys((await vault(server(), "GET", "sys/mounts", { token: of })).json.data);
        const forUi = (await vault(server(), "GET", "sys/internal/ui/mounts", { token: of })).json.data.secret;
        expect(Object.keys(forUi)).to.deep.equal(plain);
        return plain.filter((name) => name !== "secret/" && name !== "transit/");
      };
      expect(await mounts(token), can).to.deep.equal(can === "list" ? ["in/"] : ["in/", "mine/"]);
      expect(await mounts(everywhere), can).to.deep.equal(can === "list" ? ["in/", "other/", "out/"] : []);
    }
  });

  it("shows no metadata that it has not sent to a token that can only put, as natively", async () => {
    const custom_metadata = { owner: "finance" };
    mustSucceed(await send(server(), { method: "PUT", path: "/v1/secrets/in/noted", body: { value: "1" } }));
    await vault(server(), "POST", "secret/metadata/in/noted", { body: { custom_metadata } });
    for (const [can, seen] of [
      [["put"], null],
      [["put", "get"], custom_metadata],
      [["put", "list"], custom_metadata],
    ] as const) {
      const { token } = await mustCreateToken(server(), { name: `noting-${can.join("-")}`, can, paths: ["in/"] });
      for (const method of ["POST", "PATCH"]) {
        const { json } = await vault(server(), method, "secret/data/in/noted", { token, body: data });
        expect(json.data.custom_metadata, `${method} with ${can}`).to.deep.equal(seen);
        expect(json.data.version).to.be.a("number");
      }
    }
  });
});
