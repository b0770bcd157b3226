/** Transit keys beside third-party programs: each side accepts what the other one makes. */
import { execFileSync, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { pythonFile } from "../../tools/rig/python.js";
import { shareTestServer } from "../../tools/rig/server.js";
import { type Json, mustInit, mustSucceed, send } from "../../tools/rig/test-client.js";

const base64 = (data: string | Uint8Array) => Buffer.from(data).toString("base64");
const decodeRaw = (text: unknown) => Buffer.from(String(text).replace(/^vault:v\d+:/, ""), "base64");
const message = Buffer.from("what both sides sign, with ü and \0");
const additional = Buffer.from("invoice 47");

/** Reads a task in JSON on standard input; prints true or false for a check, and base64 for everything else. */
const pythonProgram = `
import base64, json, os, sys
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, hmac, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
task = json.load(sys.stdin)
data = {name: base64.b64decode(text) for name, text in task.get("bytes", {}).items()}
key = data.get("key")
if key is not None and task.get("form") == "private": key = serialization.load_der_private_key(key, None)
if key is not None and task.get("form") == "public": key = serialization.load_pem_public_key(key)
sha = hashes.SHA256()
oaep = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)
extra = {"ed25519": [], "ecdsa-p256": [ec.ECDSA(sha)],
         "pss": [padding.PSS(padding.MGF1(sha), 32), sha], "pkcs1v15": [padding.PKCS1v15(), sha]}.get(task["type"])
def result():
    what = task["do"]
    if what == "gcm-encrypt":
        nonce = os.urandom(12)
        return nonce + AESGCM(key).encrypt(nonce, data["input"], data["aad"])
    if what == "gcm-decrypt": return AESGCM(key).decrypt(data["input"][:12], data["input"][12:], data["aad"])
    if what == "oaep-encrypt": return key.encrypt(data["input"], oaep)
    if what == "oaep-decrypt": return key.decrypt(data["input"], oaep)
    if what == "hmac":
        mac = hmac.HMAC(key, sha)
        mac.update(data["input"])
        return mac.finalize()
    if what == "sign": return key.sign(data["input"], *extra)
    try:
        key.verify(data["signature"], data["input"], *extra)
        return True
    except InvalidSignature:
        return False
value = result()
print(json.dumps(value if isinstance(value, bool) else base64.b64encode(value).decode()))
`;

import { needs } from "../../tools/rig/needs.js";

type Task = {
  readonly do: string;
  readonly type: string;
  readonly form?: "private" | "public";
  readonly bytes: Readonly<Record<string, string | Uint8Array>>;
};

function python({ bytes, ...task }: Task): Buffer | boolean {
  const encoded = Object.fromEntries(Object.entries(bytes).map(([name, value]) => [name, base64(value)]));
  const input = JSON.stringify({ ...task, bytes: encoded });
  const result: unknown = JSON.parse(
    execFileSync(pythonFile() ?? "", ["-c", pythonProgram], { input, encoding: "utf8" }),
  );
  return typeof result === "boolean" ? result : Buffer.from(String(result), "base64");
}

const hasCryptography = spawnSync(pythonFile() ?? "", ["-c", "import cryptography"]).status === 0;
const hasOpenSsl = spawnSync("openssl", ["version"]).status === 0;

type Kind = { readonly type: string; readonly options: Json; readonly as: string };

const signing: readonly Kind[] = [
  { type: "ed25519", options: {}, as: "ed25519" },
  { type: "ecdsa-p256", options: {}, as: "ecdsa-p256" },
  { type: "rsa-2048", options: { signatureAlgorithm: "pss" }, as: "pss" },
  { type: "rsa-2048", options: { signatureAlgorithm: "pkcs1v15" }, as: "pkcs1v15" },
];

describe("transit keys and other programs", () => {
  const server = shareTestServer();
  before(() => mustInit(server()));

  const must = async (path: string, body: object = {}): Promise<Json> =>
    mustSucceed(await send(server(), { method: "POST", path: `/v1/transit/${path}`, body }));

  /** Creates an exportable key under a new name. */
  async function create(type: string): Promise<string> {
    const name = `made/${type}-${randomBytes(4).toString("hex")}`;
    await must(`keys/${name}`, { type, exportable: true });
    return name;
  }

  async function readPublicKey(name: string): Promise<string> {
    const shown = mustSucceed(await send(server(), { path: `/v1/transit/keys/${name}` }));
    return (shown["versions"] as Record<string, { publicKey?: string }>)["1"]?.publicKey ?? "";
  }

  async function exportPrivateKey(name: string): Promise<Buffer> {
    const { keys } = mustSucceed(await send(server(), { path: `/v1/transit/export/${name}` })) as { keys: Json };
    return Buffer.from(String(keys["1"]), "base64");
  }

  describe("Python's cryptography", () => {
    before(function () {
      needs(this, hasCryptography, "Python's cryptography");
    });

    it("decrypts and encrypts with AES-256-GCM", async () => {
      const name = await create("aes256-gcm96");
      const key = await exportPrivateKey(name);
      const { ciphertext } = await must(`encrypt/${name}`, { plaintext: base64(message), aad: base64(additional) });
      const bytes = { key, input: decodeRaw(ciphertext), aad: additional };
      expect(python({ do: "gcm-decrypt", type: "aes", bytes })).to.deep.equal(message);
      const made = python({ do: "gcm-encrypt", type: "aes", bytes: { ...bytes, input: message } });
      const sent = { ciphertext: `vault:v1:${base64(made as Buffer)}`, aad: base64(additional) };
      expect(await must(`decrypt/${name}`, sent)).to.deep.equal({ plaintext: base64(message) });
    });

    it("decrypts and encrypts with RSA-OAEP", async () => {
      const name = await create("rsa-2048");
      const { ciphertext } = await must(`encrypt/${name}`, { plaintext: base64(message) });
      const own = {
        type: "rsa",
        form: "private",
        bytes: { key: await exportPrivateKey(name), input: decodeRaw(ciphertext) },
      } as const;
      expect(python({ do: "oaep-decrypt", ...own })).to.deep.equal(message);
      const others = {
        type: "rsa",
        form: "public",
        bytes: { key: await readPublicKey(name), input: message },
      } as const;
      const made = python({ do: "oaep-encrypt", ...others }) as Buffer;
      const sent = { ciphertext: `vault:v1:${base64(made)}` };
      expect(await must(`decrypt/${name}`, sent)).to.deep.equal({ plaintext: base64(message) });
    });

    for (const { type, options, as } of signing) {
      it(`verifies and makes signatures: ${as}`, async () => {
        const name = await create(type);
        const { signature } = await must(`sign/${name}`, { input: base64(message), ...options });
        const key = await readPublicKey(name);
        const verdicts = [message, additional].map((input) => {
          const bytes = { key, input, signature: decodeRaw(signature) };
          return python({ do: "verify", type: as, form: "public", bytes });
        });
        expect(verdicts).to.deep.equal([true, false]);
        const made = python({
          do: "sign",
          type: as,
          form: "private",
          bytes: { key: await exportPrivateKey(name), input: message },
        });
        const sent = { input: base64(message), signature: `vault:v1:${base64(made as Buffer)}`, ...options };
        expect(await must(`verify/${name}`, sent)).to.deep.equal({ valid: true });
        const other = { ...sent, input: base64(additional) };
        expect(await must(`verify/${name}`, other)).to.deep.equal({ valid: false });
      });
    }

    it("makes the same MACs", async () => {
      const name = await create("hmac");
      const { hmac } = await must(`hmac/${name}`, { input: base64(message) });
      const bytes = { key: await exportPrivateKey(name), input: message };
      expect(python({ do: "hmac", type: "hmac", bytes })).to.deep.equal(decodeRaw(hmac));
    });
  });

  describe("OpenSSL's command line", () => {
    before(function () {
      needs(this, hasOpenSsl, "openssl");
    });

    /** Runs openssl in a directory with these files; returns the content of the file `out`, or null when it fails. */
    function openssl(files: Readonly<Record<string, string | Uint8Array>>, ...args: string[]): Buffer | null {
      const cwd = temporaryDirectory();
      for (const [name, content] of Object.entries(files)) writeFileSync(join(cwd, name), content);
      const { status } = spawnSync("openssl", args, { cwd });
      return status === 0 ? readFileSync(join(cwd, "out")) : null;
    }

    function verifies(key: string, input: Uint8Array, signature: Uint8Array, options: readonly string[]): boolean {
      const files = { key, input, signature, out: "" };
      const args = ["-verify", "-pubin", "-inkey", "key", "-rawin", "-in", "input", "-sigfile", "signature"];
      return openssl(files, "pkeyutl", ...args, ...options) !== null;
    }

    const flags: Readonly<Record<string, readonly string[]>> = {
      ed25519: [],
      "ecdsa-p256": ["-digest", "sha256"],
      pss: ["-digest", "sha256", "-pkeyopt", "rsa_padding_mode:pss", "-pkeyopt", "rsa_pss_saltlen:32"],
      pkcs1v15: ["-digest", "sha256", "-pkeyopt", "rsa_padding_mode:pkcs1"],
    };

    for (const { type, options, as } of signing) {
      it(`verifies and makes signatures: ${as}`, async () => {
        const name = await create(type);
        const { signature } = await must(`sign/${name}`, { input: base64(message), ...options });
        const key = await readPublicKey(name);
        const verdicts = [message, additional].map((input) =>
          verifies(key, input, decodeRaw(signature), flags[as] ?? []),
        );
        expect(verdicts).to.deep.equal([true, false]);
        const files = { key: await exportPrivateKey(name), input: message };
        const args = ["-sign", "-keyform", "DER", "-inkey", "key", "-rawin", "-in", "input", "-out", "out"];
        const made = openssl(files, "pkeyutl", ...args, ...(flags[as] ?? []));
        const sent = { input: base64(message), signature: `vault:v1:${base64(made ?? "")}`, ...options };
        expect(await must(`verify/${name}`, sent)).to.deep.equal({ valid: true });
      });
    }

    it("decrypts and encrypts with RSA-OAEP", async () => {
      const name = await create("rsa-2048");
      const padding = ["rsa_padding_mode:oaep", "rsa_oaep_md:sha256", "rsa_mgf1_md:sha256"];
      const options = [...padding.flatMap((option) => ["-pkeyopt", option]), "-in", "input", "-out", "out"];
      const { ciphertext } = await must(`encrypt/${name}`, { plaintext: base64(message) });
      const own = { key: await exportPrivateKey(name), input: decodeRaw(ciphertext) };
      expect(openssl(own, "pkeyutl", "-decrypt", "-keyform", "DER", "-inkey", "key", ...options)).to.deep.equal(
        message,
      );
      const others = { key: await readPublicKey(name), input: message };
      const made = openssl(others, "pkeyutl", "-encrypt", "-pubin", "-inkey", "key", ...options);
      const sent = { ciphertext: `vault:v1:${base64(made ?? "")}` };
      expect(await must(`decrypt/${name}`, sent)).to.deep.equal({ plaintext: base64(message) });
    });

    it("makes the same MACs", async () => {
      const name = await create("hmac");
      const { hmac } = await must(`hmac/${name}`, { input: base64(message) });
      const hex = (await exportPrivateKey(name)).toString("hex");
      const args = ["-mac", "HMAC", "-macopt", `hexkey:${hex}`, "-binary", "-out", "out", "input"];
      expect(openssl({ input: message }, "dgst", "-sha256", ...args)).to.deep.equal(decodeRaw(hmac));
    });
  });
});
