/** `POST /v1/check`: judgements of values, which no response holds. */
import { createHash, createHmac, randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { shareTestServer, type TestServer, uncached } from "../../tools/rig/server.js";
import {
  type Json,
  mustCreateToken,
  mustInit,
  mustPut,
  mustRefuse,
  mustSucceed,
  send,
} from "../../tools/rig/test-client.js";

const key = randomBytes(32);
const password = "hunter2";
const random = randomBytes(24).toString("base64url");
const certificate = Buffer.from([0, 1, 2, 255, ...randomBytes(100)]);

const values: Readonly<Record<string, object | string>> = {
  "app/db": password,
  "app/api": random,
  "web/db": password,
  "web/copy": { value: `${random}\n` },
  "web/cert": { value: certificate.toString("base64"), encoding: "base64" },
  "web/empty": { value: "" },
  "web/pem": { value: `-----BEGIN-----\n${"first".repeat(10)}\nline\n-----END-----\n` },
};

const everything = ["strength", "reuse", "search", "breach"];

type Entry = Json & { readonly search: readonly { bytes: number; start: number; digest: string }[] };

describe("POST /v1/check", () => {
  const server = shareTestServer(uncached, async (started) => {
    await mustInit(started);
    for (const [path, body] of Object.entries(values)) await mustPut(started, path, body);
  });
  const ask = (body: object, more: object = {}, at: TestServer = server()) =>
    send(at, { method: "POST", path: "/v1/check", body: { key: key.toString("base64"), ...body }, ...more });
  const checkedEntries = async (body: object) =>
    new Map((mustSucceed(await ask(body))["entries"] as Entry[]).map((entry) => [entry["path"] as string, entry]));

  it("scores texts, and gives equal values the same mark", async () => {
    const entries = await checkedEntries({});
    expect(entries.get("app/db")).to.include({ bytes: 7, score: 0 });
    expect(entries.get("app/api")).to.include({ bytes: 32, score: 4 });
    expect(entries.get("web/cert")).to.include({ bytes: 104 }).and.not.to.have.property("score");
    expect(entries.get("app/db")?.["reuse"]).to.equal(entries.get("web/db")?.["reuse"]);
    expect(new Set([...entries.values()].map((entry) => entry["reuse"])).size).to.equal(6);
    expect(entries.get("app/db")).to.have.all.keys("path", "bytes", "score", "form", "reuse");
  });

  it("gives equal values another mark for another key", async () => {
    const other = await checkedEntries({ key: randomBytes(32).toString("base64url") });
    expect(other.get("app/db")?.["reuse"]).not.to.equal((await checkedEntries({})).get("app/db")?.["reuse"]);
    expect(other.get("app/db")?.["reuse"]).to.equal(other.get("web/db")?.["reuse"]);
  });

  it("makes the documented digests for searches and breaches", async () => {
    const entries = await checkedEntries({ parts: everything });
    const digest = (label: string, bytes: Uint8Array) =>
      createHmac("sha256", key).update(label).update(bytes).digest().subarray(0, 16).toString("base64url");
    const search = (bytes: Uint8Array) => {
      const base = BigInt(key.readUInt32BE(0) | 1) & 0xffffffffn;
      const start = [...bytes.subarray(0, 8)].reduce((sum, byte) => (sum * base + BigInt(byte)) & 0xffffffffn, 0n);
      return { bytes: bytes.length, start: Number(start), digest: digest("search", bytes) };
    };
    const text = Buffer.from(random);
    const wide = Buffer.from(random, "utf16le");
    const inBase64 = (bytes: Buffer) =>
      [0, 1, 2].map((before) => {
        const whole = bytes.subarray((3 - before) % 3);
        return whole.subarray(0, whole.length - (whole.length % 3)).toString("base64");
      });
    const forms = [...inBase64(text), text.toString("hex"), text.toString("hex").toUpperCase(), ...inBase64(wide)];
    expect(entries.get("app/api")?.search.map(({ digest: made }) => made)).to.have.members(
      [text, wide, Buffer.from(wide).swap16(), ...forms.map((form) => Buffer.from(form))].map((each) =>
        digest("search", each),
      ),
    );
    expect(entries.get("app/api")?.search[0]).to.deep.equal(search(text));
    expect(entries.get("web/copy")?.search[0]).to.deep.equal(search(text)); // without its newline
    expect(entries.get("web/cert")?.search[0]).to.deep.equal(search(certificate));
    expect(entries.get("web/pem")?.search.at(-1)).to.deep.equal(search(Buffer.from("first".repeat(10))));
    expect(entries.get("web/empty")?.search).to.deep.equal([]);
    expect(entries.get("app/db")?.search).to.deep.equal([]); // 7 bytes
    const sha1 = createHash("sha1").update(password).digest();
    const breach = { prefix: sha1.toString("hex").slice(0, 8), digest: digest("breach", sha1) };
    expect(entries.get("app/db")?.["breach"]).to.deep.equal(breach);
  });

  it("says of each text whether its form is that of a secret", async () => {
    const random = randomBytes(15).toString("base64url");
    const rows: Readonly<Record<string, readonly string[]>> = {
      secret: [
        "postgres://app:pw-1@localhost/app",
        "redis://:short@cache:6379/0",
        "mongodb+srv://u:p%40ss@cluster.example/?w=majority",
        "https://hooks.example.com/services/T0AB12CD3/B0EF45GH6/x7Kp2Qm9Zr4Lw8Tn",
        "https://example.com/in?key=x7Kp2Qm9Zr4Lw8Tn",
        "AKIA7Q3XWZP2LMN8RTKV",
        "ghp_x7Kp2Qm9Zr4Lw8TnYb3Vc6Xd1Sf5Gh0Jk",
        "0b1c7a2e-93d4-4f6a-8c55-1e2f3a4b5c6d",
        "qzjxkvbwpfmhtrgd",
        `${random}\n`,
        "a.x7kp2qm9zr4lw8tn@mail.example",
      ],
      address: [
        "https://example.com/login",
        "postgres://app@localhost/app",
        "db.internal.example:5432",
        "ann@mail.example",
      ],
      text: [
        "the-administrator",
        "internal-database",
        "hunter2",
        "",
        "aaaaaaaaaaaaaaaaaaaa",
        "https:",
        "a b://c:d@e",
        "a.".repeat(500_000),
      ],
    };
    const texts = Object.entries(rows).flatMap(([form, values]) =>
      values.map((value, i) => ({ path: `form/${form}/${i}`, value, form })),
    );
    for (const { path, value } of texts) await mustPut(server(), path, { value });
    const found = mustSucceed(await ask({ prefix: "form/" }))["entries"] as Entry[];
    const forms = new Map(found.map((entry) => [entry["path"], entry["form"]]));
    expect(texts.map(({ path, value }) => `${value}: ${String(forms.get(path))}`)).to.deep.equal(
      texts.map(({ value, form }) => `${value}: ${form}`),
    );
    const scores = new Map(found.map((entry) => [entry["path"], entry["score"]]));
    expect(scores.get("form/secret/0")).to.equal(1); // that of pw-1
    expect(scores.get("form/address/1")).to.equal(4);
    for (const { path } of texts) mustSucceed(await send(server(), { method: "DELETE", path: `/v1/secrets/${path}` }));
  });

  it("the response of a check contains no value in any form", async () => {
    const { text } = await ask({ parts: everything });
    for (const value of [
      password,
      random,
      certificate.toString("base64"),
      createHash("sha1").update(random).digest("hex"),
    ])
      expect(text).not.to.contain(value);
  });

  it("a check returns pages, within a prefix", async () => {
    const first = mustSucceed(await ask({ prefix: "web/", limit: 2 }));
    expect((first["entries"] as Entry[]).map(({ path }) => path)).to.deep.equal(["web/cert", "web/copy"]);
    const rest = mustSucceed(await ask({ prefix: "web/", after: first["next"] }));
    expect((rest["entries"] as Entry[]).map(({ path }) => path)).to.deep.equal(["web/db", "web/empty", "web/pem"]);
    expect(rest).not.to.have.property("next");
  });

  it("a check requires the scope get, and covers only the token's paths", async () => {
    const { token: lister } = await mustCreateToken(server(), { name: "lister", can: ["list"] });
    mustRefuse(await ask({}, { token: lister }), 403, "FORBIDDEN");
    const { token: reader } = await mustCreateToken(server(), { name: "reader", can: ["get"], paths: ["app/"] });
    const { entries } = mustSucceed(await ask({}, { token: reader }));
    expect((entries as Entry[]).map(({ path }) => path)).to.deep.equal(["app/api", "app/db"]);
  });

  it("a check names damaged secrets, and judges the others", async () => {
    await mustPut(server(), "damaged/a", "value");
    writeFileSync(join(server().vaultPath, "gen-1", "secrets", "damaged", "a.sealed"), "no blob");
    const found = mustSucceed(await ask({}));
    expect(found["damaged"]).to.deep.equal(["damaged/a"]);
    expect(found["entries"]).to.have.lengthOf(Object.keys(values).length);
  });

  for (const [rule, body] of [
    ["no key", { key: undefined }],
    ["a short key", { key: "AAAA" }],
    ["an unknown part", { parts: ["value"] }],
    ["no part", { parts: [] }],
    ["a limit of 0", { limit: 0 }],
    ["a prefix that is no text", { prefix: 5 }],
  ] as const)
    it(`a check with ${rule} is refused`, async () => mustRefuse(await ask(body), 400, "BAD_REQUEST"));
});
