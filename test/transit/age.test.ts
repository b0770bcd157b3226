/** Keys of age in the vault: C2SP's test vectors, several recipients, rotated keys, and what is refused. */
import { createPrivateKey, randomBytes } from "node:crypto";
import { bech32 } from "@scure/base";
import {
  Decrypter,
  Encrypter,
  generateX25519Identity,
  type Identity,
  identityToRecipient,
  type Stanza,
} from "age-encryption";
import * as vectors from "cctv-age";
import { expect } from "chai";
import { shareTestServer } from "../../tools/rig/server.js";
import { type Json, mustInit, mustRefuse, mustSucceed, send } from "../../tools/rig/test-client.js";
import { wrapFileKey } from "../support/age-stanza.js";

const base64 = (data: string | Uint8Array) => Buffer.from(data).toString("base64");
const prefix = Buffer.from("302e020100300506032b656e04220420", "hex");
const text = "a message";
const fileKey = randomBytes(16);

/** PKCS #8 of an identity. */
function identityDer(identity: string): string {
  return base64(Buffer.concat([prefix, bech32.decodeToBytes(identity).bytes]));
}

/** Lines before the file of a vector. */
function vectorHead(file: Uint8Array): {
  readonly expect: string;
  readonly "file key": string;
  readonly identity: string;
} {
  const [head = ""] = Buffer.from(file).toString("latin1").split("\n\n");
  const lines = head.split("\n").map((line) => line.split(/: (.*)/).slice(0, 2));
  return Object.fromEntries(lines) as ReturnType<typeof vectorHead>;
}

function vectorFile(file: Uint8Array): Uint8Array {
  return file.subarray(Buffer.from(file).indexOf("\n\n") + 2);
}

describe("x25519 keys", () => {
  const server = shareTestServer();
  before(() => mustInit(server()));

  const post = (path: string, body: object = {}) =>
    send(server(), { method: "POST", path: `/v1/transit/${path}`, body });
  const must = async (path: string, body: object = {}): Promise<Json> => mustSucceed(await post(path, body));
  const versions = async (name: string) => {
    const { versions } = mustSucceed(await send(server(), { path: `/v1/transit/keys/${name}` }));
    return Object.values(versions as Record<string, { readonly publicKey: string }>).map(({ publicKey }) => publicKey);
  };

  /** An identity of age whose key is in the vault. */
  const vaultIdentity = (name: string): Identity => ({
    async unwrapFileKey(stanzas: Stanza[]) {
      for (const { args, body } of stanzas) {
        if (args[0] !== "X25519" || args.length !== 2) continue;
        const response = await post(`unwrap/${name}`, { share: args[1], wrapped: base64(body) });
        if (response.status === 200) return Buffer.from(String(response.json["fileKey"]), "base64");
        mustRefuse(response, 400, "BAD_REQUEST");
      }
      return null;
    },
  });
  const open = (name: string, file: Uint8Array) => {
    const decrypter = new Decrypter();
    decrypter.addIdentity(vaultIdentity(name));
    return decrypter.decrypt(file, "text");
  };
  const seal = (...recipients: readonly string[]) => {
    const encrypter = new Encrypter();
    for (const recipient of recipients) encrypter.addRecipient(recipient);
    return encrypter.encrypt(text);
  };
  const stanzaFor = async (name: string) => wrapFileKey((await versions(name))[0] ?? "", fileKey);

  // Vectors of the armor and the stream are about what age does after its file key is there.
  for (const [name, vector] of Object.entries<Uint8Array>(vectors)) {
    const head = vectorHead(vector);
    if (!/^(?:x25519|hmac|header|stanza)/.test(name) || !head.identity?.startsWith("AGE-SECRET-KEY-1")) continue;
    it(`C2SP's vector ${name} ends with ${head.expect}`, async () => {
      await must(`keys/vector/${name}`, { type: "x25519", key: identityDer(head.identity) });
      const decrypter = new Decrypter();
      decrypter.addIdentity(vaultIdentity(`vector/${name}`));
      const fileKey = await decrypter.decryptHeader(vectorFile(vector)).then(
        (key) => Buffer.from(key).toString("hex"),
        () => null,
      );
      expect(fileKey).to.equal(head.expect === "success" ? head["file key"] : null);
    });
  }

  it("files for several recipients open, also with earlier versions down to the lowest that decrypts", async () => {
    await must("keys/me", { type: "x25519" });
    await must("keys/me/rotate");
    const [first = "", second = ""] = await versions("me");
    expect([first, second].map((each) => each.slice(0, 4))).to.deep.equal(["age1", "age1"]);
    expect(first).not.to.equal(second);
    const other = await identityToRecipient(await generateX25519Identity());
    const files = await Promise.all(
      [[first], [second], [other, first], [other, second, first]].map((each) => seal(...each)),
    );
    for (const file of files) expect(await open("me", file)).to.equal(text);
    expect(await open("me", await seal(other)).catch(() => null)).to.equal(null);
    await must("keys/me/config", { minDecryptionVersion: 2 });
    const opened = await Promise.all(files.map((file) => open("me", file).catch(() => null)));
    expect(opened).to.deep.equal([null, text, null, text]);
  });

  it("a batch is unwrapped, each stanza for itself", async () => {
    await must("keys/batch", { type: "x25519" });
    const stanza = await stanzaFor("batch");
    expect(await must("unwrap/batch", stanza)).to.deep.equal({ fileKey: base64(fileKey) });
    const damaged = { ...stanza, wrapped: base64(randomBytes(32)) };
    const { results } = await must("unwrap/batch", {
      batch: [stanza, damaged, { share: stanza.share }, ...Array(40).fill(stanza)],
    });
    const shown = (results as { readonly fileKey?: string; readonly code?: string }[]).map(
      ({ fileKey: key, code }) => key ?? code,
    );
    expect(shown).to.deep.equal([base64(fileKey), "BAD_REQUEST", "BAD_REQUEST", ...Array(40).fill(base64(fileKey))]);
  });

  it("shares of low order, other lengths, other spellings of base64 and other keys' uses are refused", async () => {
    await must("keys/strict", { type: "x25519" });
    const { share, wrapped } = await stanzaFor("strict");
    const lowOrder = [
      "00".repeat(32),
      `01${"00".repeat(31)}`,
      `ecff${"ff".repeat(29)}7f`,
      `edff${"ff".repeat(29)}7f`,
      "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
      `00${"00".repeat(30)}80`,
    ];
    for (const point of lowOrder) {
      const refused = await post("unwrap/strict", { share: base64(Buffer.from(point, "hex")), wrapped });
      mustRefuse(refused, 400, "BAD_REQUEST");
      expect(refused.json["error"]).to.match(/low order/, point);
    }
    const spilled = `${share.slice(0, -1)}${String.fromCharCode(share.charCodeAt(42) + 1)}`; // bits after the last byte
    for (const wrong of ["", share.slice(0, 40), `${share}AAAA`, spilled, `${share}*`, undefined])
      mustRefuse(await post("unwrap/strict", { share: wrong, wrapped }), 400, "BAD_REQUEST");
    mustRefuse(await post("unwrap/strict", { share, wrapped: base64(randomBytes(33)) }), 400, "BAD_REQUEST");
    mustRefuse(await post("unwrap/absent", { share, wrapped }), 404, "NOT_FOUND");
    for (const [use, body] of Object.entries({ encrypt: { plaintext: "" }, sign: { input: "" }, hmac: { input: "" } }))
      mustRefuse(await post(`${use}/strict`, body), 400, "BAD_REQUEST");
    await must("keys/aes");
    const refused = await post("unwrap/aes", { share, wrapped });
    mustRefuse(refused, 400, "BAD_REQUEST");
    expect(refused.json["error"]).to.include("use a key of type x25519");
  });

  it("exportable x25519 keys are exported and imported as PKCS #8", async () => {
    await must("keys/out", { type: "x25519", exportable: true });
    const { keys } = mustSucceed(await send(server(), { path: "/v1/transit/export/out" }));
    const key = (keys as Record<string, string>)["1"] ?? "";
    expect(
      createPrivateKey({ key: Buffer.from(key, "base64"), format: "der", type: "pkcs8" }).asymmetricKeyType,
    ).to.equal("x25519");
    await must("keys/in", { type: "x25519", key });
    expect(await versions("in")).to.deep.equal(await versions("out"));
    mustRefuse(await post("keys/wrong", { type: "ed25519", key }), 400, "BAD_REQUEST");
  });
});
