/** Limits of transit keys through the public door: 2^32 encryptions a version, and RSA keys, which are made one at a time. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { decodeKeys, headerText } from "../../tools/rig/decoder.js";
import { passphrase, realScryptCost, shareTestServer, uncached } from "../../tools/rig/server.js";
import {
  type ApiResponse,
  type Json,
  mustInit,
  mustLock,
  mustRefuse,
  mustSucceed,
  mustUnlock,
  send,
} from "../../tools/rig/test-client.js";
import { vault, withPort } from "../../tools/rig/vault-client.js";
import { XaesKey } from "../../workers/crypto/xaes.js";
import { withScratch } from "../../workers/memory.js";
import { openKey, sealKey } from "../../workers/transit/key-format.js";
import { mostMessages } from "../../workers/transit/messages.js";
import { strongroom } from "../cli/command-rows.js";

const plaintext = Buffer.from("hello").toString("base64");

describe("limits of messages", () => {
  const server = shareTestServer({ ...uncached, ...realScryptCost, vaultPort: 0 }, (started) => mustInit(started));

  const post = (path: string, body: object = {}): Promise<ApiResponse> =>
    send(server(), { method: "POST", path: `/v1/transit/${path}`, body });
  const must = async (path: string, body?: object): Promise<Json> => mustSucceed(await post(path, body));
  const refusal = (name: string, version = 1) =>
    `version ${version} of the key ${name} has encrypted 2^32 messages, its limit: rotate the key`;

  /** Makes a key whose newest version may encrypt `left` more messages. */
  async function mustCreateWorn(name: string, left: number): Promise<void> {
    await must(`keys/${name}`);
    wear(name, left);
  }

  /** Seals the key again, under the vault's own key, with another count: 2^32 encryptions would take days. */
  function wear(name: string, left: number): void {
    const { home } = server();
    const generation = readFileSync(join(home, "vault", "current"), "utf8").trim();
    const file = join(home, "vault", generation, "keys", `${name}.sealed`);
    const vaultId = owned(Buffer.from(JSON.parse(headerText(home)).vaultId, "base64url"));
    const masterKey = new XaesKey(owned(decodeKeys(home, passphrase).masterKey));
    const key = { masterKey, oldKey: null, vaultId };
    const worn = withScratch(() => {
      const opened = openKey(key, name, owned(readFileSync(file)));
      if (opened === null) throw new Error(`${name} does not open`);
      const last = opened.info.versions.length - 1;
      const versions = opened.info.versions.map((version, i) =>
        i === last ? { ...version, messages: mostMessages - left } : version,
      );
      return Uint8Array.from(sealKey(key, name, { ...opened, info: { ...opened.info, versions } }));
    });
    writeFileSync(file, worn);
  }

  it("a key at 2^32 messages refuses the next until it is rotated, and decrypts all of them", async () => {
    await mustCreateWorn("app/worn", 3);
    const ciphertexts: unknown[] = [];
    for (let n = 0; n < 3; n++) ciphertexts.push((await must("encrypt/app/worn", { plaintext }))["ciphertext"]);
    for (const [path, body] of [
      ["encrypt", { plaintext }],
      ["encrypt", { batch: [{ plaintext }] }],
      ["rewrap", { ciphertext: ciphertexts[0] }],
      ["datakey", {}],
    ] as const) {
      const refused = await post(`${path}/app/worn`, body);
      mustRefuse(refused, 400, "BAD_REQUEST");
      expect(refused.json["error"]).to.equal(refusal("app/worn"));
    }
    await mustLock(server());
    await mustUnlock(server());
    mustRefuse(await post("encrypt/app/worn", { plaintext }), 400, "BAD_REQUEST");
    expect(await must("keys/app/worn/rotate")).to.include({ latestVersion: 2 });
    expect((await must("encrypt/app/worn", { plaintext }))["ciphertext"]).to.match(/^vault:v2:/);
    for (const ciphertext of ciphertexts) {
      expect(await must("decrypt/app/worn", { ciphertext })).to.deep.equal({ plaintext });
      expect((await must("rewrap/app/worn", { ciphertext }))["ciphertext"]).to.match(/^vault:v2:/);
    }
  });

  it("an earlier version, which Vault's clients may name, also refuses at 2^32 messages", async () => {
    await mustCreateWorn("earlier", 2);
    await must("keys/earlier/rotate");
    const encrypt = (body: object) => vault(withPort(server()), "POST", "secret/encrypt/earlier", { body });
    const inputs = (...versions: number[]) => versions.map((key_version) => ({ plaintext, key_version }));
    expect((await encrypt({ batch_input: inputs(2, 1, 2, 1, 1) })).json.errors).to.deep.equal([refusal("earlier")]);
    expect((await encrypt({ batch_input: inputs(2, 1, 2) })).status).to.equal(200);
    expect((await encrypt({ plaintext, key_version: 1 })).json.data.key_version).to.equal(1);
    expect((await encrypt({ plaintext, key_version: "1" })).json.errors).to.deep.equal([refusal("earlier")]);
    expect((await encrypt({ batch_input: inputs(2, 3, 2) })).status).to.equal(400);
    expect((await encrypt({ plaintext })).json.data.key_version).to.equal(2);
  });

  it("a batch that is larger than what is left is refused, and none of it is encrypted", async () => {
    await mustCreateWorn("few", 5);
    const refused = await post("encrypt/few", { batch: Array.from({ length: 6 }, () => ({ plaintext })) });
    mustRefuse(refused, 400, "BAD_REQUEST");
    expect(refused.json)
      .to.include({ error: refusal("few") })
      .and.not.to.have.property("results");
  });

  it("messages never pass 2^32 where many clients encrypt at the same time", async () => {
    await mustCreateWorn("shared", 20);
    const answers = await Promise.all(Array.from({ length: 50 }, () => post("encrypt/shared", { plaintext })));
    const encrypted = answers.filter(({ status }) => status === 200);
    expect(encrypted).to.have.lengthOf(20);
    for (const { status, json } of answers) {
      if (status !== 200) expect(json["error"]).to.equal(refusal("shared"));
    }
  });

  it("the command line and Vault's clients get the same words at 2^32", async () => {
    await mustCreateWorn("words", 0);
    const { code, stderr } = await strongroom({ STRONGROOM_HOME: server().home }, ["encrypt", "words"], "hello");
    expect(code).to.equal(2);
    expect(stderr).to.contain(refusal("words"));
    const { status, json } = await vault(withPort(server()), "POST", "secret/encrypt/words", { body: { plaintext } });
    expect(status).to.equal(400);
    expect(json.errors[0]).to.contain(refusal("words"));
  });
});

describe("RSA keys", () => {
  const server = shareTestServer({}, (started) => mustInit(started));
  const create = (name: string) =>
    send(server(), { method: "POST", path: `/v1/transit/keys/${name}`, body: { type: "rsa-4096" } });

  it("RSA keys are made one at a time while 16 wait; a lock cancels all of them, and no key is half made", async () => {
    const names = Array.from({ length: 24 }, (_, n) => `rsa/${n}`);
    const work = names.map((name) => create(name).then((answer) => ({ name, answer })));
    const responseCode = ({ json }: ApiResponse) => String(json["code"] ?? "made");
    const refusedEarly = work.map(async (one) => {
      if (responseCode((await one).answer) !== "RATE_LIMITED") throw new Error("it waits, or is made");
    });
    await Promise.any(refusedEarly);
    await mustLock(server());
    const answers = await Promise.all(work);
    await mustUnlock(server());
    const codes = answers.map(({ answer }) => responseCode(answer));
    expect(codes.filter((code) => code === "VAULT_LOCKED").length).to.be.at.least(16);
    expect([...new Set(codes)]).to.include.members(["RATE_LIMITED", "VAULT_LOCKED"]);
    const made = answers.filter(({ answer }) => answer.status === 200).map(({ name }) => name);
    const { keys } = mustSucceed(await send(server(), { path: "/v1/transit/keys" })) as { keys: Json[] };
    expect(keys.map(({ name }) => name)).to.have.members(made);
    mustSucceed(
      await send(server(), { method: "POST", path: "/v1/transit/keys/rsa/after", body: { type: "rsa-2048" } }),
    );
  });
});

function owned(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(bytes);
}
