/** Clients of Vault that others wrote, unchanged, as their users run them. One that is missing is skipped. */
import { spawn } from "node:child_process";
import { verify as verifyBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { later, shared, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { mustCreateToken } from "../../tools/rig/test-client.js";
import { startVaultServer, type VaultServer, vault } from "../../tools/rig/vault-client.js";
import { baoCommands, comparable } from "./bao-commands.js";
import { clientEnvironment, has, mustRun, python, type Ran, run } from "./programs.js";

const start = () => startVaultServer({ idleTimeoutMs: 0, keepVersions: 99 });

async function mustMakeKey(server: VaultServer, name: string, body: object = {}): Promise<void> {
  const answer = await vault(server, "POST", `transit/keys/${name}`, { body });
  expect(answer.status, answer.text).to.equal(200);
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

describe("bao", () => {
  const server = shared(start);
  before(function () {
    needs(this, has("bao", "version"), "bao");
  });

  /** Returns the environment of a client of OpenBao's own server, in its development mode. */
  async function reference(): Promise<NodeJS.ProcessEnv> {
    const address = `127.0.0.1:${await freePort()}`;
    const env = { ...clientEnvironment(server()), BAO_ADDR: `http://${address}`, BAO_TOKEN: "root-of-the-reference" };
    const options = ["-dev", `-dev-listen-address=${address}`, "-dev-root-token-id=root-of-the-reference"];
    const child = spawn("bao", ["server", ...options, "-dev-no-store-token"], { env, stdio: "ignore" });
    const ended = new Promise((resolve) => child.once("exit", resolve));
    later(async () => {
      child.kill();
      await ended;
    });
    for (let ran: Ran | null = null; ran?.status !== 0; ) ran = await run("bao", ["status"], env);
    await mustRun("bao", ["secrets", "enable", "transit"], env);
    return env;
  }

  it(`bao prints the same for ${baoCommands.length} commands as with OpenBao's server`, async () => {
    const [ours, theirs] = [clientEnvironment(server()), await reference()];
    await mustRun("bao", ["secrets", "enable", "transit"], ours);
    for (const command of baoCommands) {
      const [here, there] = await Promise.all([
        run("bao", command.split(" "), ours),
        run("bao", command.split(" "), theirs),
      ]);
      const shown = ({ status, stdout, stderr }: Ran) => comparable(`${stdout}${stderr}exit ${status}`);
      expect(shown(here), command).to.equal(shown(there));
    }
  });
});

describe("sops", () => {
  const server = shared(start);
  before(function () {
    needs(this, has("sops", "--version"), "sops");
  });

  it("sops encrypts, decrypts and rotates a file with a transit key", async () => {
    await mustMakeKey(server(), "sops");
    const env = clientEnvironment(server());
    const directory = temporaryDirectory();
    const file = join(directory, "secrets.yaml");
    writeFileSync(file, "password: hunter2\nnested:\n  token: abc\n");
    const key = `${env["VAULT_ADDR"]}/v1/transit/keys/sops`;
    await mustRun("sops", ["encrypt", "--in-place", "--hc-vault-transit", key, file], {
      ...env,
      SSL_CERT_FILE: server().certificateFile,
    });
    expect(readFileSync(file, "utf8"))
      .to.match(/vault:v1:/)
      .and.not.to.contain("hunter2");
    expect(await mustRun("sops", ["decrypt", file], env)).to.contain("password: hunter2");
    expect((await vault(server(), "POST", "transit/keys/sops/rotate")).status).to.equal(200);
    await mustRun("sops", ["rotate", "--in-place", file], env);
    expect(readFileSync(file, "utf8")).to.match(/vault:v2:/);
    expect(await mustRun("sops", ["decrypt", "--extract", '["nested"]["token"]', file], env)).to.equal("abc");
  });
});

describe("Go", () => {
  const server = shared(start);
  before(function () {
    needs(this, has("sh", "-c", "command -v go-clients"), "go-clients");
  });

  it("the Go CDK encrypts and decrypts", async () => {
    await mustMakeKey(server(), "cdk");
    await mustRun("go-clients", ["gocdk", "cdk"], clientEnvironment(server()));
  });

  // Not RSA: it signs by PKCS #1 and lets the server verify by PSS, which also fails with OpenBao's own server.
  for (const type of ["ecdsa-p256", "ed25519"]) {
    it(`sigstore's hashivault signs and verifies with a key of type ${type}`, async () => {
      await mustMakeKey(server(), type, { type });
      await mustRun("go-clients", ["sigstore", type], clientEnvironment(server()));
    });
  }
});

describe("cosign", () => {
  const server = shared(start);
  before(function () {
    needs(this, has("cosign", "version"), "cosign");
  });

  /** Makes a key with the root token, and files to sign. */
  async function prepare(key: string) {
    const directory = temporaryDirectory();
    const own = clientEnvironment(server());
    const publicKey = join(directory, "cosign.pub");
    // With a public key of the log set, it fetches no trusted root from the network.
    const env = { ...own, SIGSTORE_REKOR_PUBLIC_KEY: publicKey };
    for (const name of ["blob", "other"]) writeFileSync(join(directory, name), name);
    await mustRun("cosign", ["generate-key-pair", "--kms", `hashivault://${key}`], env, directory);
    const verify = (file: string, by: string) =>
      run(
        "cosign",
        ["verify-blob", "--private-infrastructure", "--key", by, "--signature", "sig", file],
        env,
        directory,
      );
    return { directory, env, publicKey: readFileSync(publicKey, "utf8"), verify };
  }

  const sign = (key: string) => {
    const options = ["--yes", "--tlog-upload=false", "--output-signature", "sig"];
    return ["sign-blob", ...options, "--key", `hashivault://${key}`, "blob"];
  };

  it("cosign makes a key, signs a file, and verifies it by the server and by the public key", async () => {
    const { directory, env, publicKey, verify } = await prepare("release");
    expect(await mustRun("cosign", ["public-key", "--key", "hashivault://release"], env)).to.equal(publicKey);
    await mustRun("cosign", sign("release"), env, directory);
    const signature = Buffer.from(readFileSync(join(directory, "sig"), "utf8"), "base64");
    expect(verifyBytes("sha256", Buffer.from("blob"), publicKey, signature)).to.equal(true);
    for (const by of ["hashivault://release", "cosign.pub"]) {
      const [same, other] = [await verify("blob", by), await verify("other", by)];
      expect(same.status, same.stderr).to.equal(0);
      expect(other.status).to.equal(1);
      expect(other.stderr).to.match(/invalid signature|failed vault verification/);
    }
  });

  it("cosign verifies a signature of an earlier version of the key", async () => {
    const { directory, env, verify } = await prepare("rotated");
    await mustRun("cosign", sign("rotated"), env, directory);
    expect((await vault(server(), "POST", "transit/keys/rotated/rotate")).status).to.equal(200);
    const ran = await verify("blob", "hashivault://rotated");
    expect(ran.status, ran.stderr).to.equal(0);
  });

  it("cosign signs with a token that can only sign, which makes no key", async () => {
    const { directory, env } = await prepare("limited");
    const { token } = await mustCreateToken(server(), { name: "signer", can: ["sign"], paths: ["transit/limited"] });
    const signer = { ...env, VAULT_TOKEN: token };
    await mustRun("cosign", sign("limited"), signer, directory);
    const made = await run("cosign", ["generate-key-pair", "--kms", "hashivault://mine"], signer, directory);
    expect(made.status).to.equal(1);
    expect(made.stderr).to.contain("Code: 403").and.contain("permission denied");
    expect((await vault(server(), "GET", "transit/keys/mine")).status).to.equal(404);
  });
});

describe("Ansible", () => {
  const server = shared(start);
  const ansible = join(python, "..", "ansible");
  before(function () {
    needs(
      this,
      has(python, "-c", "import hvac, ansible_collections.community.hashi_vault"),
      "Ansible with community.hashi_vault",
    );
  });

  it("Ansible looks up and writes secrets with community.hashi_vault", async () => {
    const env: NodeJS.ProcessEnv = {
      ...clientEnvironment(server()),
      ANSIBLE_HASHI_VAULT_CA_CERT: server().certificateFile,
    };
    await vault(server(), "POST", "secret/data/app/db", { body: { data: { user: "ann", password: "s3cret" } } });
    const lookup = "lookup('community.hashi_vault.vault_kv2_get', 'app/db').secret.password";
    const old = "lookup('community.hashi_vault.hashi_vault', 'secret=secret/data/app/db:user')";
    const message = `msg={{ ${lookup} }}/{{ ${old} }}`;
    const printed = await mustRun(ansible, ["localhost", "-m", "debug", "-a", message], env);
    expect(printed).to.contain("s3cret/ann");
    const write = ["localhost", "-m", "community.hashi_vault.vault_kv2_write", "-a"];
    const wish = {
      path: "app/new",
      data: { a: "1" },
      url: env["VAULT_ADDR"],
      token: env["VAULT_TOKEN"],
      ca_cert: server().certificateFile,
    };
    await mustRun(ansible, [...write, JSON.stringify(wish)], env);
    expect((await vault(server(), "GET", "secret/data/app/new")).json.data.data).to.deep.equal({ a: "1" });
  });

  it("Ansible makes a token and logs in with AppRole", async () => {
    const env: NodeJS.ProcessEnv = {
      ...clientEnvironment(server()),
      ANSIBLE_HASHI_VAULT_CA_CERT: server().certificateFile,
    };
    const role = "auth_method='approle', role_id='root', secret_id=lookup('env', 'VAULT_TOKEN')";
    const login = `lookup('community.hashi_vault.vault_login', ${role}).auth.accessor`;
    expect(await mustRun(ansible, ["localhost", "-m", "debug", "-a", `msg={{ ${login} }}`], env)).to.contain(
      "root.login-",
    );
    const create = "lookup('community.hashi_vault.vault_token_create', ttl='10m').auth.lease_duration";
    expect(await mustRun(ansible, ["localhost", "-m", "debug", "-a", `msg={{ ${create} }}`], env)).to.contain("600");
  });
});

/** Its own integration tests, from its repository: see docs/vault-clients.md. */
describe("hvac's integration tests", () => {
  const source = process.env["HVAC_SOURCE"];
  before(function () {
    const isThere = source !== undefined && has(python, "-c", "import hvac, pytest, parameterized, hcl");
    needs(this, isThere, "hvac's repository (HVAC_SOURCE) or pytest");
  });

  /** Features that Strongroom does not have, by the names of the tests: settings of a mount, backups of one key, removal of versions. */
  const expected = [/^test_configure_and_read_configuration/, /^test_(?:backup|restore)_key/, /^test_trim_key/];

  it("hvac passes its own tests of KV v2 and transit, but for unsupported features", async () => {
    const directory = temporaryDirectory();
    mkdirSync(join(source ?? "", "tests", "config_files", "generated"), { recursive: true });
    const plugin = join(process.cwd(), "test", "clients", "hvac");
    const env = {
      ...process.env,
      ...{
        PATH: `${plugin}:${process.env["PATH"]}`,
        PYTHONPATH: `${plugin}:.`,
        HVAC_TOKEN_FILE: join(directory, "token"),
      },
      ...{ HVAC_SERVER: join(process.cwd(), "bin", "strongroom.cjs"), PYTHONDONTWRITEBYTECODE: "1" },
    };
    const rooms = ["kv_v2", "transit"].map((name) => `tests/integration_tests/api/secrets_engines/test_${name}.py`);
    const args = [
      "-m",
      "pytest",
      "-o",
      "addopts=",
      "-p",
      "strongroom_hvac",
      "-p",
      "no:cacheprovider",
      "-q",
      "--tb=line",
      ...rooms,
    ];
    const { stdout } = await run(python, args, env, source);
    const failed = [...stdout.matchAll(/^(?:FAILED|ERROR) \S+::(\w+)/gm)].map(([, name = ""]) => name);
    expect(stdout, stdout.slice(-2000)).to.match(/\d+ passed/);
    expect(failed.filter((name) => !expected.some((one) => one.test(name)))).to.deep.equal([]);
  });
});
