/** Vaults of each format version of a blob and of the header, which every later version of the program must read. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { passphrase, restarted, startTestServer, type TestServer } from "../../tools/rig/server.js";
import { type Json, mustGet, mustList, mustPut, mustSucceed, mustUnlock, send } from "../../tools/rig/test-client.js";
import { untilRotated } from "../support/key-requests.js";
import { headerOfVersion1, headerOfVersion2 } from "../vectors/frozen-headers.js";

/** Files by name below the vault's directory. */
type Files = Readonly<Record<string, Buffer>>;

const files: Files = {
  current: Buffer.from("gen-1\n"),
  "gen-1/header.json": Buffer.from(headerOfVersion1.text),
  "gen-1/secrets/gr%c3%bc%c3%9fe/%43on.sealed": Buffer.from(
    [
      "U1JWQgEAAADJwcYBWW8/2NQcdT7/cT0fZkqgfWqj+x/5m69WP+Wrtt/E0bzJYtkvJu5I/YlabTeEaM4GiImAHMc+lrVdrnmj",
      "8KbXyPTJZcjmLmoUGh6eLxWJk0WAY7kOn/o0P69P7TuAABZcmLyFFpLTwxJ2pq9wdIka2ZYOPJl5D7am3lyJmvtLKHZOigOV",
      "PTazkCCnh4Wvkfeo93Ez8BnGn7F4zL7mJStmeQl97fJRUZ5ywT6r2iXOGvAEstQTp6WYDFC9KHrdyqq8g3er2XZNsrN/LWRp",
      "W9Yxt8qsGm2ivNZEvJdAMNPmMf6u7gFcdOoVWVa96zlwSHRqBbeNevMw7c44LQQApcTO2W8RoycHRstfMB7yZA==",
    ].join(""),
    "base64",
  ),
  "gen-1/secrets/app/db/password.sealed": Buffer.from(
    [
      "U1JWQgEAAACFCzb5435PN6PT9NgniuB7BqsDarBDImzO0FlhmoCN/zXkb1zQOtlJv8cpH+b9XA/loGQUDgnqMx6LkwFQA4XH",
      "ObFV0U/qOEIJPMHZyzsJUyC6nedJcV6qg9jro77ajayt+tAqh3SKXqrSDnfKMnah7XO+LPPUM7z8ArTzjCVcfSAL1F0eDKft",
      "1XtLFdVMI3NyYacY3ksqHzdMeoVDU3CX9wTCNkf8qRZeKR1VjPOQP2oDplF6UQ==",
    ].join(""),
    "base64",
  ),
};

const writtenAt = "2026-03-01T12:00:00.000Z";
const secrets = [
  { path: "app/db/password", value: "s3cr3t", metadata: {}, etag: "Czb5435PN6PT9Ngn" },
  {
    path: "grüße/Con",
    value: "pässwörd \u0000\u2028 🗝️",
    metadata: { type: "password", description: "für den Schlüsselbund – 密码" },
    etag: "wcYBWW8_2NQcdT7_",
  },
].map((secret) => ({ ...secret, createdAt: writtenAt, updatedAt: writtenAt, version: 1 }));

const historyFiles: Files = {
  current: Buffer.from("gen-1\n"),
  "gen-1/header.json": Buffer.from(
    [
      '{"format":"strongroom","version":1,"vaultId":"S8_9xZ8ADbCD15SJH-qmOg","createdAt":"2026-03-01T12:00:',
      '00.000Z","kdf":{"name":"scrypt","logN":14,"r":8,"p":1,"salt":"XDwsH7M3IV8G6-eH9vpgtQ"},"wrappedKey":',
      '"Lr2WrQ_mPZUFVH0Mz5r0fPY0Ck31auNLBom5hEAT02s","mac":"xi4q8wO3yvMJtPbVWFd83R8VrnNZOoHVT63H7-b0CAM"}',
      "\n",
    ].join(""),
  ),
  "gen-1/secrets/gr%c3%bc%c3%9fe/%43on.sealed": Buffer.from(
    [
      "U1JWQgIAAADVuFLS8nkPQV9u9qz0X9IyN+7bJ+twW+N9yNuxeIN1hdt2fPqmUkozmyQ9VruGtKWeNqeHjsW2qsNCmpivu0BO",
      "AJ6q08DwACxTSot34DUkefI4JKlcywOVv3reaz7c6Y2hT3wvUOt+yBfTuCdpSv2M74X8idSy+Xc/Yo+e23kcBr3lkc/y5IwV",
      "AcsYH/UOFD35vmgZ+ZQ0ywATB++7Z+7nxqklJ2W41W72cY/lGLOpgrw3N76v8EPNMwU55GqAyXgaDZyv44cR/DC6Sy8ACcwM",
      "5wBPK9ccAAAARuel8xPCn9miClGi/PfBOnkXkXQPnJA/I+UfLBgBGBD0qu/u4VGSU5FKRDFc+EU9iZmBH6d/wACmJUJA8Mnn",
      "BRexXMsbCkA=",
    ].join(""),
    "base64",
  ),
  "gen-1/secrets/app/db/password.sealed": Buffer.from(
    [
      "U1JWQgIAAACRk7QZR9h/kj+Yb6vMU21j0qI/a/g0SwDBCyng1is32wOCzCD7hLvbtwEQgA9VDQSbh7bC318cx0Wfhfs7Sn4r",
      "ZokOoxA9rVFX89lmAOVSwwnpeV+o2+zHaUC70/VAfocDSBtwOBKO3yCOHUuZiiD7S+DyfPCOzkOwx6hV2Nc0fX8D8iIcKSpR",
      "7NMJLLuhO6Py4QAAAC/sNS0xYAuMCMBBAnuDunIMGP7RBkGXFNUDtBuo6F7+nZwUXSb6A+9dl/Uy6jz3JwAAAKLnHoRxMruL",
      "XqTCzzz4BkYza0yrcCTjawum5kyc2AaAyqDTWvOO+lf4Hv7rtJcSSRCVfYjTp1L8UAbDcXGlagPamD8jlwV+RyWjnHt3ZGB/",
      "fdha/7WYUVwhgNYHwwuUoFPDzkvyO6AMoI/fdH82iIXZ9B/2Qi7WBrhhDAvTd55O6sU3MYqAQhrBRJ/XJt8mROrPHQK3z+xm",
      "/UM6PRrbsXsO+IEAAAAw7nUHIGyUcYKPFokLxFm363Dkb74VPO1Tw7u8IuuYqOxIcLpeCXDIPoPkOhsVZA25AAAAkfm3OIfi",
      "sgHzDU+UU1XvDE6FkogX8I8K/FLhJRI7Or3XivLlbiAIuD1wDAhrRM2AXNUX+Ae8oE2UrQ8e8h4OEap3UIgdX7ic8mz101zo",
      "8wUU9FX8jk6Ln1y9daJMg6cZrd4lqIu1WZ5nKgmlZ/DeArRbaHCJYsk6Zefjb7nr/Tnv1QNQnDZ+KQgcxWmOiU5Lm2AAAAAv",
      "ru9F5bi6bjgtMMxKsLJmz8W3TrvWOopBR2Md/L1ZD2QXtppbu2aJ1yBIIlqim+g=",
    ].join(""),
    "base64",
  ),
};

const [createdAt, aMinuteLater, twoMinutesLater] = [writtenAt, "2026-03-01T12:01:00.000Z", "2026-03-01T12:02:00.000Z"];
const versions = [
  { version: 3, value: "first", metadata: {}, createdAt, updatedAt: twoMinutesLater, etag: "k7QZR9h_kj-Yb6vM" },
  {
    version: 2,
    value: "s3cr3t",
    metadata: { type: "password" },
    createdAt,
    updatedAt: aMinuteLater,
    etag: "5x6EcTK7i16kws88",
  },
  { version: 1, value: "first", metadata: {}, createdAt, updatedAt: createdAt, etag: "-bc4h-KyAfMNT5RT" },
];

const filesUnderKeys: Files = {
  current: Buffer.from("gen-1\n"),
  "gen-1/header.json": Buffer.from(headerOfVersion2.text),
  "gen-1/secrets/gr%c3%bc%c3%9fe/%43on.sealed": Buffer.from(
    [
      "U1JWQgIAAADV82efICwhu+pfAwF5PQPbyCnmppaOQzhueZ6hLwqfKk1Ugjdnrj743JiGYl5Eule4n6kAXUcqvQgjQaa1qzeH",
      "AXJkRng6c/LfCGwLHcXPVvCxwvOXGESfOZqO3jtcYeTFEoN64WYzXV+Dro9fxW8WNYX1rSchXUs/8JPI7OFlJNpfUd6Y+gmH",
      "JGVVdJGXGG4Or+8hvVhaaD9rNPPsyNYg/ToJSgJpOCw8ROPYUYfpgJckLWhmpv3IoTJtMcVWVUMXlhUVYTOBUUd1/TpaZ4J8",
      "0UPkDDN6AAAARnjxy4BJ0UzWj9jJ9QlEogS961EDPPsks7B+hd3lcKSzOFpaNvka9ms93/OTf+NAAd7BSlDM+1ah4jlxoyfp",
      "eH9zl9fZYdQ=",
    ].join(""),
    "base64",
  ),
};

/** Files of a rotation that a program from before `oldKeyFor` had begun: nothing is sealed or signed again yet. */
const rotatingFiles: Files = {
  current: Buffer.from("gen-1\n"),
  "gen-1/header.json": Buffer.from(
    `${[
      '{"format":"strongroom","version":2,"vaultId":"QI-AsApSY-qIjMMOqT5Ljg","createdAt":"2026-11-23T03:16:',
      '59.145Z","slots":[{"kind":"passphrase","createdAt":"2026-11-23T03:16:59.145Z","kdf":{"name":"scrypt"',
      ',"logN":10,"r":8,"p":1,"salt":"-flqKDhrPVBNzqzxvvGwoA"},"wrappedKey":"TsCeiqJwaWTBsrlOVV6piOC8dljnCD',
      'qOHQM5a7GUQAU","check":"awYdCUXxt6QA54A01p8ZO3HDviYHNcURJr7oafQFaNU"}],"oldKey":"bdjhy_bGVyQwUjAd11k',
      '9BoQ7Tq8jRx25FR2-KzkzJTE","mac":"fD7WrJpk_MC3qUwVEtNLKhYck-n1UCevjBuzqJC0EWQ"}',
    ].join("")}\n`,
  ),
  "gen-1/tokens.document": Buffer.from(
    `${[
      '{"format":"strongroom tokens","version":1,"tokens":[{"name":"ci","can":["get"],"paths":["a"],"create',
      'dAt":1795403819185,"ttlSeconds":0,"expiresAt":null,"digest":"2brfUxLMn6o9HlERF1lrCrjapwnRDfAAQs5Mj8Z',
      '80hk","former":[],"mac":"L3tLBc3F_hD9y3pUSlP6nlcHRIexyuCFi7lXVBoNAQw","lastUsedAt":null}],"ended":[]',
      "}",
    ].join("")}\n`,
  ),
  "gen-1/secrets/a.sealed": Buffer.from(
    [
      "U1JWQgIAAACRa7uUyY7kk6nkeuGnXsw2D6yAQRzKpqQDiRaqUCuRLlmRMbpZ0CqbjZAbsJdabWRQfUoUxeGpmgMB/Lu2fR/2zA8K",
      "wKm4/x0ty8c4xCji/ahMLXdqFcZ/9Lj0Abv9RzEheHidrOE5BNxS2UYtCOWPMfBBSpeDX5bbbEYZ3nww+aDTmLBeaYz7ApzBg0vw",
      "jRHYTAAAAES2374tlFbsRCv/Y/3JNxyMELmPZh3hx8Z2REAKH9x/sV9rr33fbvr3jYhh3cyUQtdVkvjvjqvf1Wu0E1G6F2uBcv5A",
      "4w==",
    ].join(""),
    "base64",
  ),
};
const rotatingToken = "src_tbcSbjwTWIIMtXkoZMq8SS_th9NNfnmZZ9I7PSuI35IV24WZA";

async function unlockedServer(vault: Files, text = passphrase): Promise<TestServer> {
  const home = join(temporaryDirectory(), "home");
  for (const [name, bytes] of Object.entries(vault)) {
    const file = join(home, "vault", name);
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, bytes, { mode: 0o600 });
  }
  const server = await startTestServer({ home });
  await mustUnlock(server, text);
  return server;
}

async function mustGetVersion(server: TestServer, path: string, version: number): Promise<Json> {
  return mustSucceed(await send(server, { path: `/v1/versions/${encodeURIComponent(path)}?version=${version}` }));
}

describe("a vault of format version 1, written on 2026-11-21", () => {
  it("opens under its passphrase and returns every secret", async () => {
    const server = await unlockedServer(files);
    for (const secret of secrets) expect(await mustGet(server, secret.path)).to.deep.equal(secret);
    expect(await mustList(server)).to.deep.equal(secrets.map(({ value: _, ...entry }) => entry));
  });

  it("keeps each secret as its version 1 when it is put again", async () => {
    const server = await unlockedServer(files);
    for (const secret of secrets) {
      expect(await mustPut(server, secret.path, "new")).to.include({ version: 2 });
      expect(await mustGet(server, secret.path)).to.include({ value: "new", createdAt: writtenAt, version: 2 });
      expect(await mustGetVersion(server, secret.path, 1)).to.deep.equal(secret);
    }
  });
});

describe("a vault with blobs of format version 2, written on 2026-11-22", () => {
  it("opens under its passphrase and returns every secret with its versions", async () => {
    const server = await unlockedServer(historyFiles);
    const path = "app/db/password";
    expect(await mustGet(server, path)).to.deep.equal({ path, ...versions[0] });
    for (const version of versions) {
      expect(await mustGetVersion(server, path, version.version)).to.deep.equal({ path, ...version });
    }
    expect(mustSucceed(await send(server, { path: `/v1/versions/${path}` }))).to.deep.equal({
      path,
      versions: versions.map(({ value: _, ...entry }) => entry),
    });
    expect(await mustGet(server, "grüße/Con")).to.deep.equal({
      ...secrets[1],
      createdAt: aMinuteLater,
      updatedAt: aMinuteLater,
      etag: "uFLS8nkPQV9u9qz0",
    });
  });
});

describe("a vault with a header of version 2, written on 2026-11-22", () => {
  for (const [i, text] of [passphrase, ...headerOfVersion2.keys].entries()) {
    it(`opens under ${i === 0 ? "its passphrase" : `its key ${i}`} and returns its secret`, async () => {
      const server = await unlockedServer(filesUnderKeys, text);
      const { path, value, metadata } = secrets[1] ?? {};
      expect(await mustGet(server, "grüße/Con")).to.deep.include({ path, value, metadata });
    });
  }
});

describe("a rotation that an earlier version of the program had begun", () => {
  it("a rotation keeps the client tokens that the old key signed, and ends with them under the new one", async () => {
    const server = await unlockedServer(rotatingFiles);
    const get = { path: "/v1/secrets/a", token: rotatingToken };
    expect(mustSucceed(await send(server, get))).to.include({ value: "sealed before the rotation" });
    await untilRotated(server);
    const again = await restarted(server);
    await mustUnlock(again);
    mustSucceed(await send(again, get));
  });
});
