/** Transit keys in the key worker's real thread: what their sealed form binds, counts and lets out. */
import { expect } from "chai";
import { shared } from "../../tools/rig/clean-up.js";
import type { Bytes, SharedBytes, TransitUse } from "../../workers/protocol.js";
import { sharedBytes, startNewVault, verdict } from "../support/key-worker.js";

const now = Date.UTC(2026, 0, 1);

const encodeBody = (fields: unknown): SharedBytes => sharedBytes(JSON.stringify(fields));

function parsed(response: Bytes | null): Record<string, unknown> {
  expect(response, "a response").not.to.equal(null);
  return JSON.parse(new TextDecoder().decode(response ?? new Uint8Array()));
}

const base64 = (text: string) => Buffer.from(text).toString("base64");
const copy = (blob: Bytes) => new Uint8Array(blob);

describe("transit keys in the key worker", () => {
  const worker = shared(startNewVault);

  async function mustCreate(name: string, fields: object = {}): Promise<Bytes> {
    const { blob } = await worker().call({
      op: "createTransitKey",
      name,
      exists: false,
      body: encodeBody(fields),
      now,
    });
    return blob;
  }

  /** Reserves messages where it must. */
  async function use(blob: Bytes, what: TransitUse, fields: object, name = "k"): Promise<Record<string, unknown>> {
    const call = (current: Bytes) =>
      worker().call({ op: "useTransitKey", use: what, name, blob: copy(current), body: encodeBody(fields) });
    const used = await call(blob);
    if (used.response !== null) return parsed(used.response);
    const { lacking: versions } = used;
    const reserved = await worker().call({ op: "reserveMessages", name, blob: copy(blob), versions });
    return parsed((await call(reserved.blob)).response);
  }

  it("a transit key opens under its own name only, and never as a secret", async () => {
    const blob = await mustCreate("k");
    const calls = [
      worker().call({ op: "showTransitKey", name: "other", blob: copy(blob) }),
      worker().call({ op: "open", path: "k", blob: copy(blob) }),
      worker().call({ op: "exportTransitKey", name: "other", blob: copy(blob) }),
      worker().call({ op: "showTransitKey", name: "k", blob: copy(blob) }),
    ];
    const verdicts = await Promise.all(calls.map((call) => verdict("opens", call)));
    expect(verdicts).to.deep.equal(["INTEGRITY", "INTEGRITY", "INTEGRITY", "opens"]);
  });

  it("a transit key with any byte changed or under another name is refused, also after it was used", async () => {
    const blob = await mustCreate("k");
    const { ciphertext } = await use(blob, "encrypt", { plaintext: base64("hello") });
    const decrypt = (changed: Bytes, name = "k") => verdict("used", use(changed, "decrypt", { ciphertext }, name));
    for (let at = 0; at < blob.length; at += 3) {
      expect(await decrypt(blob)).to.equal("used");
      const changed = copy(blob);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(await decrypt(changed), `byte ${at}`).to.equal("INTEGRITY");
    }
    expect(await decrypt(blob, "other")).to.equal("INTEGRITY");
  });

  it("a private part is exported only where its key was made exportable", async () => {
    const [kept, exportable] = [await mustCreate("k"), await mustCreate("k", { exportable: true })];
    expect(await verdict("out", worker().call({ op: "exportTransitKey", name: "k", blob: kept }))).to.equal(
      "BAD_REQUEST",
    );
    const { response } = await worker().call({ op: "exportTransitKey", name: "k", blob: exportable });
    const { keys } = parsed(response) as { keys: Record<string, string> };
    expect(Buffer.from(keys["1"] ?? "", "base64")).to.have.length(32);
  });

  it("messages are reserved in a blob that must come back, before the key encrypts", async () => {
    const blob = await mustCreate("k");
    const body = () => encodeBody({ plaintext: base64("hello") });
    const encrypt = (current: Bytes) =>
      worker().call({ op: "useTransitKey", use: "encrypt", name: "k", blob: copy(current), body: body() });
    expect((await encrypt(blob)).response).to.equal(null);
    const reserved = await worker().call({ op: "reserveMessages", name: "k", blob: copy(blob), versions: [1] });
    expect((await encrypt(blob)).response, "before the reservation is stored").to.equal(null);
    const { ciphertext } = parsed((await encrypt(reserved.blob)).response);
    expect(ciphertext).to.match(/^vault:v1:[A-Za-z0-9+/]+=*$/);
    expect(await use(blob, "decrypt", { ciphertext })).to.deep.equal({ plaintext: base64("hello") });
  });

  it("each of many concurrent uses gets its own result", async () => {
    const blob = await mustCreate("k");
    const { ciphertext } = await use(blob, "encrypt", { plaintext: base64("hello") });
    const unused = await mustCreate("unused");
    const call = (what: TransitUse, fields: object, name = "k", used = blob) =>
      worker().call({ op: "useTransitKey", use: what, name, blob: copy(used), body: encodeBody(fields) });
    const shown = async (sent: ReturnType<typeof call>) => {
      const { response } = await sent;
      return response === null ? "reserve first" : (parsed(response)["plaintext"] ?? Object.keys(parsed(response)));
    };
    const sent = Array.from({ length: 20 }, () => [
      shown(call("decrypt", { ciphertext })),
      verdict("decrypts", call("decrypt", { ciphertext: "vault:v1:AAAA" })),
      verdict("opens", call("hmac", { input: "" }, "other")),
      shown(call("encrypt", { plaintext: base64("hello") }, "unused", unused)),
      shown(call("hmac", { input: base64("hello") })),
      shown(call("decrypt", { batch: [{ ciphertext }, {}] })),
    ]);
    const expected = [base64("hello"), "BAD_REQUEST", "INTEGRITY", "reserve first", ["hmac"], ["results"]];
    for (const results of sent) expect(await Promise.all(results)).to.deep.equal(expected);
  });

  it("each input of a batch is read for itself", async () => {
    const blob = await mustCreate("k");
    const batch = [
      { plaintext: base64("one") },
      { plaintext: "%" },
      {},
      { plaintext: base64("four"), aad: base64("a") },
    ];
    const { results } = (await use(blob, "encrypt", { batch })) as { results: Record<string, string>[] };
    expect(results.map((result) => result["code"] ?? "encrypted")).to.deep.equal([
      "encrypted",
      "BAD_REQUEST",
      "BAD_REQUEST",
      "encrypted",
    ]);
    const ciphertexts = [{ ciphertext: results[0]?.["ciphertext"] }, { ciphertext: results[3]?.["ciphertext"] }];
    const back = (await use(blob, "decrypt", { batch: ciphertexts })) as { results: Record<string, string>[] };
    expect(back.results.map(({ plaintext, code }) => plaintext ?? code)).to.deep.equal([base64("one"), "BAD_REQUEST"]);
  });

  it("options of Vault that a key does not have, and wrong bodies, are refused", async () => {
    const blob = await mustCreate("k");
    const call = (body: object) => verdict("done", use(blob, "encrypt", body));
    const bodies = [
      { plaintext: base64("a"), context: base64("b") },
      { plaintext: 1 },
      { plaintext: "YQ=" },
      { plaintext: "YR==" },
      { batch: {} },
      { batch: Array.from({ length: 1001 }, () => ({})) },
      [],
    ];
    for (const body of bodies) expect(await call(body), JSON.stringify(body).slice(0, 40)).to.equal("BAD_REQUEST");
    const created = worker().call({
      op: "createTransitKey",
      name: "k",
      exists: false,
      body: encodeBody({ derived: true }),
      now,
    });
    expect(await verdict("made", created)).to.equal("BAD_REQUEST");
  });

  it("earlier versions decrypt down to the lowest that is allowed", async () => {
    const first = await mustCreate("k");
    const { ciphertext } = await use(first, "encrypt", { plaintext: base64("hello") });
    const change = { op: "changeTransitKey", name: "k", now } as const;
    const { blob: second } = await worker().call({ ...change, change: "rotate", blob: first, body: encodeBody({}) });
    expect(await use(second, "decrypt", { ciphertext })).to.deep.equal({ plaintext: base64("hello") });
    const rewrapped = (await use(second, "rewrap", { ciphertext })) as { ciphertext: string };
    expect(rewrapped.ciphertext).to.match(/^vault:v2:/);
    const minimum = { change: "config", body: encodeBody({ minDecryptionVersion: 2 }) } as const;
    const { blob: third } = await worker().call({ ...change, ...minimum, blob: copy(second) });
    const decrypting = (text: unknown) => verdict("decrypts", use(third, "decrypt", { ciphertext: text }));
    expect([await decrypting(ciphertext), await decrypting(rewrapped.ciphertext)]).to.deep.equal([
      "BAD_REQUEST",
      "decrypts",
    ]);
  });

  it("a signature is made with the stored version, also when another one had its number", async () => {
    const first = await mustCreate("k", { type: "ed25519" });
    const rotated = async () => {
      const change = { op: "changeTransitKey", change: "rotate", name: "k", now } as const;
      return (await worker().call({ ...change, blob: copy(first), body: encodeBody({}) })).blob;
    };
    for (const blob of [await rotated(), await rotated()]) {
      const input = base64("a message");
      const { signature } = await use(blob, "sign", { input });
      expect(await use(blob, "verify", { input, signature })).to.deep.equal({ valid: true });
    }
  });
});
