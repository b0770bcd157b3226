/** `sys` on the port for Vault's clients: seal and unseal, and mounts without state. */
import { expect } from "chai";
import { passphrase } from "../../tools/rig/server.js";
import { mustCreateToken, mustPut, mustStatus, mustSucceed, send } from "../../tools/rig/test-client.js";
import { startVaultServer, type VaultServer, vault } from "../../tools/rig/vault-client.js";

const unseal = (server: VaultServer, body: object, token?: string | null) =>
  vault(server, "PUT", "sys/unseal", { body, ...(token !== undefined && { token }) });

describe("seal and unseal", () => {
  it("seal and unseal work with the passphrase or a key, for a token that may", async () => {
    const server = await startVaultServer();
    const created = { method: "POST", path: "/v1/keys", body: { passphrase, label: "paper" } };
    const { key } = mustSucceed(await send(server, created));
    for (const opener of [passphrase, key]) {
      expect((await vault(server, "PUT", "sys/seal")).status).to.equal(204);
      const { json } = await vault(server, "GET", "sys/seal-status", { token: null });
      expect(json).to.include({ type: "shamir", initialized: true, sealed: true, t: 1, n: 1, progress: 0 });
      expect((await unseal(server, { key: opener }, null)).status).to.equal(403);
      expect((await unseal(server, { key: opener })).json).to.include({ sealed: false, progress: 0 });
    }
    const { token } = await mustCreateToken(server, { name: "reader" });
    expect((await unseal(server, { key: passphrase }, token)).status).to.equal(403);
    expect((await vault(server, "POST", "sys/seal", { token })).status).to.equal(403);
  });

  it("a wrong unseal key counts as a wrong passphrase natively, and is never repeated", async () => {
    const server = await startVaultServer();
    await vault(server, "PUT", "sys/seal");
    for (const body of [{}, { key: "" }, { key: 5 }, { reset: true }])
      expect((await unseal(server, body)).status).to.equal(400);
    for (let failure = 0; failure < 10; failure++) {
      const { status, text } = await unseal(server, { key: "wrong horse" });
      expect(status).to.equal(400);
      expect(text).not.to.contain("horse");
    }
    expect((await unseal(server, { key: passphrase })).status).to.equal(429);
    const native = { method: "POST", path: "/v1/unlock", body: { passphrase } };
    expect((await send(server, native)).status).to.equal(429);
    expect((await mustStatus(server))["locked"]).to.equal(true);
  });

  it("sys/leader and sys/init report an initialized vault without high availability", async () => {
    const server = await startVaultServer();
    const get = async (path: string) => (await vault(server, "GET", path, { token: null })).json;
    expect(await get("sys/leader")).to.include({ ha_enabled: false });
    expect(await get("sys/init")).to.deep.equal({ initialized: true });
  });
});

describe("mounts for Vault's clients", () => {
  it("mounts are the whole vault, transit and each top folder that a token may see", async () => {
    const server = await startVaultServer();
    for (const path of ["app/a", "other/b", "single"]) await mustPut(server, path, "1");
    const { token } = await mustCreateToken(server, { name: "ci", can: ["list"], paths: ["app/"] });
    const mounts = async (as?: string) => (await vault(server, "GET", "sys/mounts", { ...(as && { token: as }) })).json;
    const { data, ...top } = await mounts();
    expect(Object.keys(data)).to.deep.equal(["app/", "other/", "secret/", "transit/"]);
    expect(top).to.deep.include(data);
    expect(data["app/"]).to.deep.include({ type: "kv", options: { version: "2" } });
    expect(data["transit/"]).to.deep.include({ type: "transit", options: null });
    expect(Object.keys((await mounts(token)).data)).to.deep.equal(["app/", "secret/", "transit/"]);
    const { json: ui } = await vault(server, "GET", "sys/internal/ui/mounts", { token });
    expect(Object.keys(ui.data.secret)).to.deep.equal(["app/", "secret/", "transit/"]);
  });

  it("a mount with a slash in its name is neither made nor shown nor used", async () => {
    const server = await startVaultServer();
    const body = { type: "kv-v2" };
    for (const name of ["team/kv", "team/other", "team%2fkv", "team/kv/", "team//kv", "team/keys", "a/b/c"]) {
      for (const [method, path] of [
        ["POST", `sys/mounts/${name}`],
        ["PUT", `sys/mounts/${name}`],
        ["GET", `sys/mounts/${name}`],
        ["GET", `sys/mounts/${name.replace(/\/$/, "")}/tune`],
        ["DELETE", `sys/mounts/${name}`],
      ] as const) {
        const { status, json } = await vault(server, method, path, method === "GET" ? {} : { body });
        expect(status, `${method} ${path}`).to.equal(400);
        expect(json.errors[0], `${method} ${path}`).to.match(/mount has no slash/);
      }
    }
    expect((await vault(server, "POST", "sys/mounts/team/", { body })).status).to.equal(204);
    for (const path of ["team/kv/data/foo", "team/kv/metadata/foo", "team/kv/keys/foo", "team/keys/encrypt/k"])
      expect((await vault(server, "POST", path, { body: { data: {} } })).status, path).to.equal(404);
    expect((await vault(server, "LIST", "secret/metadata")).status).to.equal(404);
    expect((await vault(server, "LIST", "team/keys")).status).to.equal(404);
  });

  it("mounts exist under any name, and take the engines kv and transit", async () => {
    const server = await startVaultServer();
    const get = async (path: string) => (await vault(server, "GET", path)).json;
    expect((await get("sys/internal/ui/mounts/new/a/b")).data).to.deep.include({ path: "new/", type: "kv" });
    expect((await get("sys/mounts/new")).options).to.deep.equal({ version: "2" });
    expect((await get("sys/mounts/new/tune")).data.options).to.deep.equal({ version: "2" });
    const enable = async (body: object) => (await vault(server, "POST", "sys/mounts/new", { body })).status;
    expect(await enable({ type: "kv", options: { version: 2 } })).to.equal(204);
    expect(await enable({ type: "kv-v2" })).to.equal(204);
    expect(await enable({ type: "transit" })).to.equal(204);
    expect(await enable({ type: "kv", options: { version: "1" } })).to.equal(400);
    expect(await enable({ type: "pki" })).to.equal(400);
    expect((await vault(server, "DELETE", "sys/mounts/new")).status).to.equal(400);
    expect((await vault(server, "POST", "sys/mounts/new/tune", { body: {} })).status).to.equal(400);
    expect((await vault(server, "POST", "new/config", { body: { max_versions: 5 } })).status).to.equal(400);
  });
});
