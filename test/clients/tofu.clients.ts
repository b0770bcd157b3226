/** OpenTofu with the Terraform provider for Vault, unchanged. Skipped where one of them is missing. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { shared, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { mustCreateToken, mustSucceed, send } from "../../tools/rig/test-client.js";
import { startVaultServer, type VaultServer, vault } from "../../tools/rig/vault-client.js";
import { clientEnvironment, findProgram, has, mustRun, type Ran, run } from "./programs.js";

const provider = findProgram("terraform-provider-vault");

/** The provider is named by its directory, so that no registry is asked for it. */
const settings = (directory: string) =>
  `provider_installation {\n  dev_overrides {\n    "hashicorp/vault" = ${JSON.stringify(directory)}\n  }\n}\n`;

const providers = `
terraform {
  required_providers {
    vault = { source = "hashicorp/vault" }
  }
}
`;

const secret = `
variable "password" { default = "s3cret" }
variable "path" { default = "app/db" }
resource "vault_kv_secret_v2" "db" {
  mount     = "secret"
  name      = var.path
  data_json = jsonencode({ user = "ann", password = var.password, nested = { list = [1, 2.5, true, null, "ü"] } })
}
data "vault_kv_secret_v2" "db" {
  mount = vault_kv_secret_v2.db.mount
  name  = vault_kv_secret_v2.db.name
}
output "read" {
  value     = data.vault_kv_secret_v2.db.data_json
  sensitive = true
}
`;

/** Texts only, and read by `data`: the provider's ephemeral resource fails on other values, and its `data_json` is always {}. */
const writeOnly = `
resource "vault_kv_secret_v2" "source" {
  mount                = "secret"
  name                 = "wo/source"
  delete_all_versions  = true
  data_json_wo         = jsonencode({ a = "1", text = "ü" })
  data_json_wo_version = 1
  custom_metadata {
    max_versions         = 5
    delete_version_after = 3600
    data                 = { team = "db" }
  }
}
ephemeral "vault_kv_secret_v2" "source" {
  mount    = "secret"
  mount_id = vault_kv_secret_v2.source.id
  name     = vault_kv_secret_v2.source.name
}
resource "vault_kv_secret_v2" "copy" {
  mount                = "secret"
  name                 = "wo/copy"
  data_json_wo         = jsonencode(ephemeral.vault_kv_secret_v2.source.data)
  data_json_wo_version = 1
}
data "vault_kv_secrets_list_v2" "all" {
  mount      = "secret"
  name       = "wo"
  depends_on = [vault_kv_secret_v2.copy]
}
output "names" {
  value     = data.vault_kv_secrets_list_v2.all.names
  sensitive = true
}
`;

const transitKey = `
provider "vault" { skip_child_token = true }
resource "vault_transit_secret_backend_key" "orders" {
  backend          = "transit"
  name             = "orders"
  deletion_allowed = true
}
`;

const encryptedState = `
terraform {
  encryption {
    key_provider "openbao" "vault" { key_name = "state" }
    method "aes_gcm" "vault" { keys = key_provider.openbao.vault }
    state {
      method   = method.aes_gcm.vault
      enforced = true
    }
  }
}
variable "value" { default = "hunter2" }
resource "terraform_data" "kept" { input = var.value }
output "kept" { value = terraform_data.kept.output }
`;

const unchanged = 0;
const changed = 2;

/** A directory with a configuration, and commands that run in it. */
function project(server: VaultServer, configuration: string, token = server.token) {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, "main.tf"), configuration);
  const settingsFile = join(directory, "tofurc");
  writeFileSync(settingsFile, settings(provider ?? ""));
  const quiet = { TF_CLI_CONFIG_FILE: settingsFile, CHECKPOINT_DISABLE: "1" };
  const env = { ...clientEnvironment(server), ...quiet, VAULT_TOKEN: token, BAO_TOKEN: token };
  const always = ["-no-color", "-input=false"];
  return {
    state: join(directory, "terraform.tfstate"),
    apply: (...args: string[]) => mustRun("tofu", ["apply", "-auto-approve", ...always, ...args], env, directory),
    tryApply: (...args: string[]) => run("tofu", ["apply", "-auto-approve", ...always, ...args], env, directory),
    plan: (...args: string[]) => run("tofu", ["plan", "-detailed-exitcode", ...always, ...args], env, directory),
    destroy: () => mustRun("tofu", ["destroy", "-auto-approve", ...always], env, directory),
    output: async (name: string): Promise<unknown> =>
      JSON.parse(await mustRun("tofu", ["output", "-no-color", "-json", name], env, directory)),
  };
}

function mustPlan({ status, stdout, stderr }: Ran, expected: number): void {
  expect(status, `${stdout}${stderr}`).to.equal(expected);
}

const start = () => startVaultServer({ idleTimeoutMs: 0, keepVersions: 99 });

describe("OpenTofu with the provider for Vault", () => {
  const server = shared(start);
  before(function () {
    needs(this, has("tofu", "version"), "tofu");
    needs(this, provider !== undefined, "terraform-provider-vault");
  });

  async function stored(path: string): Promise<unknown> {
    const response = await vault(server(), "GET", `secret/data/${path}`);
    return response.status === 404 ? null : response.json.data.data;
  }

  it("OpenTofu creates, reads, changes and deletes a secret, and then plans no changes", async () => {
    const { apply, plan, output, destroy } = project(server(), providers + secret);
    mustPlan(await plan(), changed);
    await apply();
    const first = { user: "ann", password: "s3cret", nested: { list: [1, 2.5, true, null, "ü"] } };
    expect(await stored("app/db")).to.deep.equal(first);
    expect(JSON.parse(String(await output("read")))).to.deep.equal(first);
    mustPlan(await plan(), unchanged);

    mustPlan(await plan("-var=password=new"), changed);
    await apply("-var=password=new");
    expect(await stored("app/db")).to.deep.equal({ ...first, password: "new" });
    expect(JSON.parse(String(await output("read")))).to.include({ password: "new" });
    mustPlan(await plan("-var=password=new"), unchanged);

    await destroy();
    expect(await stored("app/db")).to.equal(null);
    const { data } = (await vault(server(), "GET", "secret/metadata/app/db")).json;
    expect(Object.keys(data.versions)).to.deep.equal(["1", "2"]); // it deletes the newest version only
  });

  it("OpenTofu uses a child token, which ends with its own", async () => {
    const rights = { can: ["list", "get", "put", "delete"], paths: ["team/"] };
    const { name, token } = await mustCreateToken(server(), { name: "tofu", ...rights });
    const { apply, tryApply } = project(server(), providers + secret, token);
    await apply("-var=path=team/db");
    const children = async () => {
      const { tokens } = mustSucceed(await send(server(), { path: "/v1/tokens" }));
      return (tokens as { name: string; parent?: string; can: string[]; paths: string[] }[]).filter(
        ({ parent }) => parent === name,
      );
    };
    const made = await children();
    expect(made.length).to.be.greaterThan(0);
    for (const { name: child, can, paths } of made) {
      expect(child).to.match(/^tofu\.terraform-/);
      expect({ can, paths }).to.deep.equal(rights);
    }
    const outside = await tryApply("-var=path=other/db");
    expect(outside.status).to.equal(1);
    expect(outside.stderr).to.contain("Code: 403").and.contain("the path is outside of this token's paths");
    mustSucceed(await send(server(), { method: "DELETE", path: `/v1/tokens/${name}` }));
    const refused = await tryApply("-var=path=team/db");
    expect(refused.status, refused.stdout).to.equal(1);
    expect(refused.stderr).to.contain("Code: 403");
    expect(await children()).to.deep.equal([]);
  });

  it("OpenTofu writes values outside its state, and reads them as ephemeral ones", async () => {
    const { apply, plan, output, destroy } = project(server(), providers + writeOnly);
    await apply();
    const value = { a: "1", text: "ü" };
    expect(await stored("wo/source")).to.deep.equal(value);
    expect(await stored("wo/copy")).to.deep.equal(value);
    expect(await output("names")).to.deep.equal(["copy", "source"]);
    const { data } = (await vault(server(), "GET", "secret/metadata/wo/source")).json;
    const wanted = { max_versions: 5, delete_version_after: "1h0m0s", custom_metadata: { team: "db" } };
    expect(data).to.deep.include(wanted);
    mustPlan(await plan(), unchanged);
    await destroy();
    expect((await vault(server(), "GET", "secret/metadata/wo/source")).status).to.equal(404);
    expect(await stored("wo/copy")).to.equal(null);
  });

  it("OpenTofu makes and deletes a transit key with the root token", async () => {
    const { apply, plan, destroy } = project(server(), providers + transitKey);
    await apply();
    expect((await vault(server(), "GET", "transit/keys/orders")).json.data.type).to.equal("aes256-gcm96");
    mustPlan(await plan(), unchanged);
    await destroy();
    expect((await vault(server(), "GET", "transit/keys/orders")).status).to.equal(404);
  });
});

describe("encrypted state of OpenTofu", () => {
  const server = shared(start);
  before(function () {
    needs(this, has("tofu", "version"), "tofu");
  });

  it("OpenTofu encrypts its state with a transit key and a token for that key, also after a rotation", async () => {
    expect((await vault(server(), "POST", "transit/keys/state")).status).to.equal(200);
    const rights = { can: ["encrypt", "decrypt"], paths: ["transit/state"] };
    const { name, token } = await mustCreateToken(server(), { name: "state", ...rights });
    const { state, apply, tryApply, plan, output } = project(server(), encryptedState, token);
    await apply();
    expect(readFileSync(state, "utf8")).to.contain("encrypted_data").and.not.to.contain("hunter2");
    expect(await output("kept")).to.equal("hunter2");
    mustPlan(await plan(), unchanged);

    expect((await vault(server(), "POST", "transit/keys/state/rotate")).status).to.equal(200);
    mustPlan(await plan("-var=value=new"), changed);
    await apply("-var=value=new");
    expect(await output("kept")).to.equal("new");

    mustSucceed(await send(server(), { method: "DELETE", path: `/v1/tokens/${name}` }));
    const refused = await tryApply();
    expect(refused.status, refused.stdout).to.equal(1);
    expect(refused.stderr).to.contain("Code: 403");
  });
});
