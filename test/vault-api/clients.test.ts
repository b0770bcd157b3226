/** Third-party clients, unchanged, on the port for Vault's clients: curl, hvac (PyPI) and node-vault (npm). */
import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { realScryptCost } from "../../tools/rig/server.js";
import { mustGet, mustPut } from "../../tools/rig/test-client.js";
import { startVaultServer, type VaultServer } from "../../tools/rig/vault-client.js";
import { strongroom } from "../cli/run-command.js";

const run = promisify(execFile);

/** A registry that does not answer must not stop the tests for long. */
const installMs = 90_000;

/** Returns false where the package cannot be had; `why` says so. */
function installs(command: string, args: readonly string[]): boolean {
  const { status } = spawnSync(command, args, { timeout: installMs, stdio: "ignore" });
  if (status !== 0) process.stderr.write(`      (skipped: ${command} cannot install ${args.at(-1)})\n`);
  return status === 0;
}

function clientEnvironment({ certificateFile, vaultPort, token }: VaultServer): NodeJS.ProcessEnv {
  const address = { VAULT_ADDR: `https://localhost:${vaultPort}`, VAULT_TOKEN: token, VAULT_CACERT: certificateFile };
  return { PATH: process.env["PATH"], HOME: temporaryDirectory(), ...address, NODE_EXTRA_CA_CERTS: certificateFile };
}

/** Values that each side writes and the other reads. */
const texts = { plain: "geheim", unicode: '✓ \u{1f511} "ü\\"\n', empty: "", large: "ü".repeat(2 ** 19) };

async function putNatively(server: VaultServer): Promise<void> {
  for (const [name, value] of Object.entries(texts)) await mustPut(server, `native/${name}`, value);
  await mustPut(server, "native/json", JSON.stringify({ user: "root", port: 5432 }));
  await mustPut(server, "native/binary", { value: "AP+AfQ==", encoding: "base64" });
}

/** Asserts that a client has written the same under `client/`. */
async function mustHaveWritten(server: VaultServer): Promise<void> {
  for (const [name, value] of Object.entries(texts)) {
    expect((await mustGet(server, `client/${name}`))["value"], name).to.equal(value);
  }
  expect(JSON.parse(String((await mustGet(server, "client/json"))["value"]))).to.deep.equal({
    user: "root",
    port: 5432,
  });
  expect(await mustGet(server, "client/binary")).to.include({ value: "AP+AfQ==", encoding: "base64" });
}

const hvacScript = `
import hvac, json, os, sys
client = hvac.Client(url=os.environ["VAULT_ADDR"], token=os.environ["VAULT_TOKEN"], verify=os.environ["VAULT_CACERT"])
kv = client.secrets.kv.v2
names = json.loads(sys.argv[1])
assert client.is_authenticated() and client.sys.is_initialized() and not client.sys.is_sealed()
assert client.sys.read_health_status(method="GET")["initialized"]
for name in names:
    data = kv.read_secret_version(path="native/" + name, raise_on_deleted_version=True)["data"]["data"]
    kv.create_or_update_secret(path="client/" + name, secret=data)
assert kv.read_secret_version(path="native/json", raise_on_deleted_version=True)["data"]["data"] == {"user": "root", "port": 5432}
assert sorted(kv.list_secrets(path="client")["data"]["keys"]) == sorted(names)
kv.create_or_update_secret(path="h/a", secret={"a": "1", "b": "2"}, cas=0)
try:
    kv.create_or_update_secret(path="h/a", secret={"a": "2"}, cas=0)
    assert False
except hvac.exceptions.InvalidRequest as error:
    assert "check-and-set parameter did not match the current version" in str(error)
kv.patch(path="h/a", secret={"b": "3", "c": {"d": 1}})
read = lambda version=None: kv.read_secret_version(path="h/a", version=version, raise_on_deleted_version=True)["data"]
assert read()["data"] == {"a": "1", "b": "3", "c": {"d": 1}}, read()
assert read(1)["data"] == {"a": "1", "b": "2"}
kv.update_metadata(path="h/a", max_versions=5, cas_required=False, delete_version_after="2h0m0s", custom_metadata={"owner": "ci"})
meta = kv.read_secret_metadata(path="h/a")["data"]
assert meta["max_versions"] == 5 and meta["custom_metadata"] == {"owner": "ci"}, meta
assert meta["delete_version_after"] == "2h0m0s" and meta["current_version"] == 2 and list(meta["versions"]) == ["1", "2"]
kv.delete_latest_version_of_secret(path="h/a")
try:
    read()
    assert False
except hvac.exceptions.InvalidPath:
    pass
assert kv.read_secret_version(path="h/a", raise_on_deleted_version=False)["data"]["metadata"]["deletion_time"]
kv.undelete_secret_versions(path="h/a", versions=[2])
assert read()["data"]["a"] == "1"
kv.delete_secret_versions(path="h/a", versions=[1])
kv.destroy_secret_versions(path="h/a", versions=[1, 2])
assert all(one["destroyed"] for one in kv.read_secret_metadata(path="h/a")["data"]["versions"].values())
kv.delete_metadata_and_all_versions(path="h/a")
try:
    kv.read_secret_metadata(path="h/a")
    assert False
except hvac.exceptions.InvalidPath:
    pass
assert "secret/" in client.sys.list_mounted_secrets_engines()["data"]
transit, me = client.secrets.transit, client.auth.token
transit.create_key("h")
sealed = transit.encrypt_data("h", "aGk=")["data"]["ciphertext"]
transit.rotate_key("h")
sealed = transit.rewrap_data("h", sealed)["data"]["ciphertext"]
assert sealed.startswith("vault:v2:") and transit.decrypt_data("h", sealed)["data"]["plaintext"] == "aGk="
transit.create_key("signer", key_type="ecdsa-p256")
signature = transit.sign_data("signer", "aGk=", hash_algorithm="sha2-512")["data"]["signature"]
assert transit.verify_signed_data("signer", "aGk=", signature=signature, hash_algorithm="sha2-512")["data"]["valid"]
assert sorted(transit.list_keys()["data"]["keys"]) == ["h", "signer"]
child = me.create(ttl="10m", policies=["list"])["auth"]
assert child["policies"] == ["list"] and me.lookup(child["client_token"])["data"]["ttl"] > 500
me.revoke(child["client_token"])
login = hvac.Client(url=os.environ["VAULT_ADDR"], verify=os.environ["VAULT_CACERT"])
login.auth.approle.login(role_id="root", secret_id=os.environ["VAULT_TOKEN"])
assert login.is_authenticated() and login.auth.token.renew_self()["auth"]["lease_duration"] > 80000
login.logout(revoke_token=True)
other = hvac.Client(url=os.environ["VAULT_ADDR"], token="hvs.wrong", verify=os.environ["VAULT_CACERT"])
assert not other.is_authenticated()
try:
    other.secrets.kv.v2.read_secret_version(path="native/json", raise_on_deleted_version=True)
    assert False
except hvac.exceptions.Forbidden:
    pass
client.sys.seal()
assert client.sys.is_sealed()
try:
    read()
    assert False
except hvac.exceptions.VaultDown:
    pass
assert not client.sys.submit_unseal_key(sys.argv[2])["sealed"]
print("hvac did all of it")
`;

const nodeVaultScript = `
const assert = require("node:assert");
const { VAULT_ADDR: endpoint, VAULT_TOKEN: token } = process.env;
const client = require("node-vault")({ endpoint, token });
const names = JSON.parse(process.argv[2]);
async function main() {
  assert.equal((await client.health()).sealed, false);
  assert.equal((await client.status()).initialized, true);
  for (const name of names) {
    const { data } = await client.read("secret/data/native/" + name);
    await client.write("secret/data/client/" + name, { data: data.data });
  }
  assert.deepEqual((await client.list("secret/metadata/client")).data.keys.sort(), [...names].sort());
  await client.write("app/data/a", { data: { a: "1" }, options: { cas: 0 } });
  await assert.rejects(client.write("app/data/a", { data: { a: "2" }, options: { cas: 0 } }), /check-and-set parameter did not match/);
  await client.update("app/data/a", { data: { b: null, c: "3" } });
  assert.deepEqual((await client.read("secret/data/app/a")).data.data, { a: "1", c: "3" });
  await client.delete("app/data/a");
  await assert.rejects(client.read("app/data/a"), (error) => error.response.statusCode === 404);
  await client.write("app/undelete/a", { versions: [2] });
  assert.equal((await client.read("app/data/a")).data.metadata.version, 2);
  await client.delete("app/metadata/a");
  assert.ok((await client.mounts())["secret/"]);
  await client.write("transit/keys/n", {});
  const { data: sealed } = await client.encryptData({ name: "n", plaintext: "aGk=" });
  assert.equal((await client.decryptData({ name: "n", ciphertext: sealed.ciphertext })).data.plaintext, "aGk=");
  assert.equal((await client.tokenCreate({ ttl: "5m" })).auth.lease_duration, 300);
  client.token = token; // it has taken the child's
  assert.equal((await client.tokenLookupSelf()).data.id, token);
  const login = require("node-vault")({ endpoint });
  await login.approleLogin({ role_id: "root", secret_id: token });
  await login.tokenRevokeSelf();
  const other = require("node-vault")({ endpoint, token: "hvs.wrong" });
  await assert.rejects(other.read("app/data/a"), (error) => error.response.statusCode === 403);
  await client.seal();
  assert.equal((await client.status()).sealed, true);
  assert.equal((await client.unseal({ key: process.argv[3] })).sealed, false);
  console.log("node-vault did all of it");
}
main();
`;

const names = JSON.stringify([...Object.keys(texts), "json", "binary"]);
const passphrase = "correct horse battery staple";

describe("unchanged clients on the port for Vault's clients", () => {
  it("hvac reads what the native API wrote, and the reverse, with versions, metadata, seal and unseal", async function () {
    const packages = temporaryDirectory();
    const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", packages, "hvac==2.4.0"];
    needs(this, installs("python3", pip), "hvac (STRONGROOM_CLIENTS)");
    const server = await startVaultServer();
    await putNatively(server);
    const env = { ...clientEnvironment(server), PYTHONPATH: packages };
    const { stdout } = await run("python3", ["-c", hvacScript, names, passphrase], { env });
    expect(stdout).to.equal("hvac did all of it\n");
    await mustHaveWritten(server);
  });

  it("node-vault reads what the native API wrote, and the reverse, with versions, seal and unseal", async function () {
    const directory = temporaryDirectory();
    const npm = [
      "install",
      "--silent",
      "--no-audit",
      "--no-fund",
      "--ignore-scripts",
      "--prefix",
      directory,
      "node-vault@0.12.0",
    ];
    mkdirSync(directory, { recursive: true });
    needs(this, installs("npm", npm), "node-vault (STRONGROOM_CLIENTS)");
    const server = await startVaultServer();
    await putNatively(server);
    const script = join(directory, "clients.cjs");
    writeFileSync(script, nodeVaultScript);
    const { stdout } = await run(process.execPath, [script, names, passphrase], { env: clientEnvironment(server) });
    expect(stdout).to.equal("node-vault did all of it\n");
    await mustHaveWritten(server);
  });

  it("curl lists, reads and writes with what strongroom vault-env prints", async function () {
    needs(this, spawnSync("curl", ["--version"]).status === 0, "curl");
    const server = await startVaultServer(realScryptCost);
    await mustPut(server, "app/a", "geheim");
    const { stdout: exported, code } = await strongroom(server, ["vault-env"]);
    expect(code).to.equal(0);
    const script = `${exported}
      ask() { curl -sS --fail --cacert "$VAULT_CACERT" -H "X-Vault-Token: $VAULT_TOKEN" "$@"; }
      ask -X LIST "$VAULT_ADDR/v1/secret/metadata/"
      ask "$VAULT_ADDR/v1/secret/data/app/a"
      ask -X POST -d '{"data":{"user":"root"}}' "$BAO_ADDR/v1/secret/data/app/b" > /dev/null
      ask -I "$BAO_ADDR/v1/sys/health" | head -n 1`;
    const { stdout } = await run("bash", ["-ec", script]);
    expect(stdout).to.match(/"keys":\["app\/"\].*"data":\{"value":"geheim"\}.*HTTP\/1\.1 200/s);
    expect((await mustGet(server, "app/b"))["value"]).to.equal('{"user":"root"}');
  });
});
