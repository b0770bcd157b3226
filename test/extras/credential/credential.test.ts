/** Credentials in the protocols of those who ask: AWS, kubectl, cargo and Terraform; expired ones, and a locked vault. */
import { expect } from "chai";
import { shareTestServer } from "../../../tools/rig/server.js";
import {
  mustCreateToken,
  mustInit,
  mustLock,
  mustPut,
  mustSucceed,
  mustUnlock,
  send,
} from "../../../tools/rig/test-client.js";
import { must, serverEnvironment, strongroom } from "../../cli/command-rows.js";

const later = "2099-01-02T03:04:05.678Z";
const aws = { accessKeyId: "AKIA", secretAccessKey: "hidden-text", sessionToken: "session" };

describe("strongroom credential", () => {
  const server = shareTestServer({}, mustInit);
  const here = () => serverEnvironment(server());
  afterEach(() => mustUnlock(server()));

  const put = (path: string, value: object | string, expiresAt?: string) =>
    send(server(), {
      method: "PUT",
      path: `/v1/secrets/${path}`,
      body: { value: typeof value === "string" ? value : JSON.stringify(value), ...(expiresAt && { expiresAt }) },
    }).then(mustSucceed);

  it("credential aws prints the credential_process form, with the expiry of the object or the secret", async () => {
    await put("cloud/aws", { ...aws, expiresAt: later });
    const wanted = { Version: 1, AccessKeyId: "AKIA", SecretAccessKey: "hidden-text" };
    const printed = JSON.parse(await must(here(), ["credential", "aws", "cloud/aws"]));
    expect(printed).to.deep.equal({ ...wanted, SessionToken: "session", Expiration: "2099-01-02T03:04:05Z" });
    await put("cloud/aws", { accessKeyId: "AKIA", secretAccessKey: "hidden-text" }, later);
    const second = JSON.parse(await must(here(), ["credential", "aws", "cloud/aws"]));
    expect(second).to.deep.equal({ ...wanted, Expiration: "2099-01-02T03:04:05Z" });
  });

  it("credential kubernetes prints an ExecCredential from a token, or a certificate and its key", async () => {
    const head = { apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential" };
    await put("k8s/token", { token: "t" });
    expect(JSON.parse(await must(here(), ["credential", "kubernetes", "k8s/token"]))).to.deep.equal({
      ...head,
      status: { token: "t" },
    });
    const pair = { clientCertificateData: "CERT", clientKeyData: "KEY" };
    await put("k8s/pair", { ...pair, expiresAt: later });
    const status = { ...pair, expirationTimestamp: "2099-01-02T03:04:05Z" };
    expect(JSON.parse(await must(here(), ["credential", "kubernetes", "k8s/pair"]))).to.deep.equal({ ...head, status });
  });

  const refused: readonly (readonly [what: string, form: string, value: object | string, says: RegExp])[] = [
    [
      "a credential that has expired",
      "aws",
      { ...aws, expiresAt: "2020-01-01T00:00:00Z" },
      /has expired: store a new one/,
    ],
    ["an expiry that is no time", "aws", { ...aws, expiresAt: "soon" }, /must be a time/],
    ["a missing member", "aws", { accessKeyId: "AKIA" }, /has no secretAccessKey/],
    [
      "a member that is no text",
      "aws",
      { ...aws, secretAccessKey: 47 },
      /secretAccessKey in cloud\/bad must be a text/,
    ],
    ["half a pair", "kubernetes", { clientCertificateData: "CERT" }, /has no clientKeyData/],
    ["a value that is no JSON", "kubernetes", "hidden-text", /must be a JSON object/],
    ["a JSON array", "aws", '["hidden-text"]', /must be a JSON object/],
  ];
  for (const [what, form, value, says] of refused) {
    it(`credential refuses ${what}, and does not repeat it`, async () => {
      await put("cloud/bad", value);
      const { code, stdout, stderr } = await strongroom(here(), ["credential", form, "cloud/bad"]);
      expect([code, stdout, says.test(stderr)], stderr).to.deep.equal([2, "", true]);
      expect(stderr).not.to.contain("hidden-text");
    });
  }

  const writes = ["get", "put", "delete"];
  const cargoGet = `${JSON.stringify({ v: 1, registry: { "index-url": "x" }, kind: "get", operation: "read" })}\n`;
  type Asker = readonly [can: readonly string[], scope: string, path: string, args: readonly string[], input?: string];
  const askers: Readonly<Record<string, Asker>> = {
    aws: [["get"], "cloud/aws", "cloud/aws", ["credential", "aws", "cloud/aws"]],
    kubectl: [["get"], "k8s/me", "k8s/me", ["credential", "kubernetes", "k8s/me"]],
    cargo: [writes, "cargo/", "cargo/x", ["cargo-credential", "--cargo-plugin"], cargoGet],
    terraform: [writes, "terraform/", "terraform/x.example", ["terraform-credentials", "get", "x.example"]],
  };
  for (const [asker, [can, scope, path, args, input]] of Object.entries(askers)) {
    it(`${asker} works with a token for its secrets only, and gets nothing while the vault is locked`, async () => {
      await put(path, asker === "kubectl" ? { token: "hidden-text" } : aws);
      await mustPut(server(), "other/secret", "{}");
      const { token } = await mustCreateToken(server(), { name: asker, can, paths: [scope] });
      const narrow = { ...here(), STRONGROOM_TOKEN: token };
      const ask = () => strongroom(narrow, args, input);
      expect((await ask()).stdout).to.contain("hidden-text");
      for (const outside of [["get"], ["rm", "-y"]])
        expect((await strongroom(narrow, [...outside, "other/secret"])).code).to.equal(14);
      await mustLock(server());
      const locked = await ask();
      expect(locked.stdout + locked.stderr)
        .to.match(/the vault is locked/)
        .and.not.contain("hidden-text");
      await mustUnlock(server());
      mustSucceed(await send(server(), { method: "DELETE", path: `/v1/tokens/${asker}` }));
      const ended = await ask();
      expect(ended.stdout + ended.stderr)
        .to.match(/token/)
        .and.not.contain("hidden-text");
      expect([locked.code, ended.code]).to.deep.equal(asker === "cargo" ? [0, 0] : [3, 5]);
    });
  }

  /** Sends cargo's requests; returns the responses after the greeting. */
  const cargo = async (...requests: readonly object[]) => {
    const lines = requests.map((request) => `${JSON.stringify({ v: 1, ...request })}\n`).join("");
    const output = await must(here(), ["cargo-credential", "--cargo-plugin"], lines);
    const [greeting, ...answers] = output
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
    expect(greeting).to.deep.equal({ v: [1] });
    return answers;
  };
  const registry = { "index-url": "sparse+https://crates.example/index/", name: "mine" };
  const cargoPath = "cargo/sparse%2Bhttps:%2F%2Fcrates.example%2Findex%2F";

  it("cargo-credential stores, gives and forgets tokens", async () => {
    const get = { registry, kind: "get", operation: "read" };
    const notFound = { Err: { kind: "not-found" } };
    const answers = await cargo(
      get,
      { registry, kind: "login", token: "cargo token" },
      get,
      { registry, kind: "logout" },
      { registry, kind: "logout" },
      { registry, kind: "unknown" },
    );
    expect(answers).to.deep.equal([
      notFound,
      { Ok: { kind: "login" } },
      { Ok: { kind: "get", token: "cargo token", operation_independent: true, cache: "session" } },
      { Ok: { kind: "logout" } },
      notFound,
      { Err: { kind: "operation-not-supported" } },
    ]);
  });

  it("cargo-credential reports the expiry of a token, and why there is none, in cargo's form", async () => {
    const get = { registry, kind: "get", operation: "read" };
    await put(encodeURIComponent(cargoPath), "t", later);
    const expiration = Math.floor(Date.parse(later) / 1000);
    expect(await cargo(get)).to.deep.equal([
      { Ok: { kind: "get", token: "t", operation_independent: true, cache: "expires", expiration } },
    ]);
    const wrong = await cargo({ ...get, v: 2 }, { kind: "get" }, { registry, kind: "login" });
    const texts = wrong.map((answer) => (answer as { readonly Err: { readonly message: string } }).Err.message);
    expect(texts.map((text) => text.split(":")[0])).to.deep.equal(Array(3).fill("strongroom"));
    await mustLock(server());
    const [locked] = await cargo(get);
    expect(JSON.stringify(locked)).to.match(/^\{"Err":\{"kind":"other","message":"strongroom: the vault is locked/);
  });

  it("terraform-credentials stores, gives and forgets tokens", async () => {
    const run = (action: string, input = "") =>
      strongroom(here(), ["terraform-credentials", action, "app.example"], input);
    expect(await run("get")).to.include({ code: 0, stdout: "{}\n" });
    expect(await run("store", '{"token":"t"}')).to.include({ code: 0, stdout: "" });
    expect(await run("get")).to.include({ code: 0, stdout: '{"token":"t"}\n' });
    for (const input of ['{"token":"hidden-text","more":1}', "hidden-text", "{}"]) {
      const { code, stderr } = await run("store", input);
      expect(code).to.equal(2);
      expect(stderr).not.to.contain("hidden-text");
    }
    expect(await run("forget")).to.include({ code: 0 });
    expect(await run("forget")).to.include({ code: 0 });
    expect(await run("get")).to.include({ code: 0, stdout: "{}\n" });
    await mustLock(server());
    expect(await run("get")).to.include({ code: 3, stdout: "" });
  });
});
