/** Custom metadata: `custom` of the HTTP API, which clients of Vault know as `custom_metadata`. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { preparedHome } from "../../tools/rig/prepared-home.js";
import { shareTestServer, startTestServer } from "../../tools/rig/server.js";
import {
  type Json,
  mustGet,
  mustInit,
  mustList,
  mustPut,
  mustRefuse,
  mustSucceed,
  mustUnlock,
  send,
} from "../../tools/rig/test-client.js";
import { vault, withPort } from "../../tools/rig/vault-client.js";

describe("custom metadata", () => {
  const shared = shareTestServer({ vaultPort: 0 }, mustInit);
  const server = () => withPort(shared());
  let paths = 0;
  const freshPath = () => `custom/${++paths}`;
  const custom = { owner: "ci", "ü né\n": "", __proto__x: '\u0000"\\', "7": "seven" };
  const change = (path: string, body: object) =>
    send(server(), { method: "PATCH", path: `/v1/metadata/${path}`, body });
  const asVault = async (method: string, path: string, body?: object) =>
    (await vault(server(), method, `secret/${path}`, { ...(body && { body }) })).json;
  const shownBy = async (path: string) => (await mustGet(server(), path))["metadata"];

  it("custom metadata of a put is in the responses of get, list, versions and put", async () => {
    const path = freshPath();
    const metadata = { type: "password", custom };
    expect((await mustPut(server(), path, { value: "v", ...metadata }))["metadata"]).to.deep.equal(metadata);
    expect(await shownBy(path)).to.deep.equal(metadata);
    expect((await mustList(server(), `?prefix=${path}`))[0]?.metadata).to.deep.equal(metadata);
    const { versions } = mustSucceed(await send(server(), { path: `/v1/versions/${path}` }));
    expect((versions as readonly Json[])[0]).to.deep.include({ metadata });
    expect((await asVault("GET", `metadata/${path}`)).data.custom_metadata).to.deep.equal(custom);
  });

  it("a put without custom metadata drops it, and an undo brings it back", async () => {
    const path = freshPath();
    await mustPut(server(), path, { value: "v", custom });
    await mustPut(server(), path, "w");
    expect(await shownBy(path)).to.deep.equal({});
    mustSucceed(await send(server(), { method: "POST", path: `/v1/versions/${path}`, body: { version: 1 } }));
    expect(await shownBy(path)).to.deep.equal({ custom });
  });

  it("a metadata change keeps custom metadata, replaces it as a whole, or removes it with null", async () => {
    const path = freshPath();
    await mustPut(server(), path, { value: "v", custom });
    mustSucceed(await change(path, { description: "d" }));
    expect(await shownBy(path)).to.deep.equal({ description: "d", custom });
    mustSucceed(await change(path, { custom: { a: "b" } }));
    expect(await shownBy(path)).to.deep.equal({ description: "d", custom: { a: "b" } });
    mustSucceed(await change(path, { custom: null }));
    expect(await shownBy(path)).to.deep.equal({ description: "d" });
  });

  it("empty custom metadata is absent, and a put makes a version only where it differs", async () => {
    const path = freshPath();
    expect(await mustPut(server(), path, { value: "v", custom: {} })).to.deep.include({ metadata: {}, version: 1 });
    expect(await mustPut(server(), path, { value: "v", custom })).to.include({ version: 2 });
    expect(await mustPut(server(), path, { value: "v", custom })).to.include({ version: 2 });
  });

  it("custom metadata is moved and copied with a secret", async () => {
    const [path, moved, copied] = [freshPath(), freshPath(), freshPath()];
    await mustPut(server(), path, { value: "v", custom });
    const run = (operation: object) =>
      send(server(), { method: "POST", path: "/v1/batch", body: { operations: [operation] } });
    mustSucceed(await run({ copy: path, to: copied }));
    mustSucceed(await run({ move: path, to: moved }));
    mustSucceed(await run({ put: path, value: "v", custom: { of: "batch" } }));
    for (const at of [moved, copied]) expect(await shownBy(at), at).to.deep.equal({ custom });
    expect(await shownBy(path)).to.deep.equal({ custom: { of: "batch" } });
  });

  it("custom metadata of 64 texts and of 16 KiB is accepted", async () => {
    const many = Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`n${i}`, "t"]));
    const large = { ["n".repeat(128)]: "ü".repeat((16_384 - 128) / 2) };
    for (const most of [many, large]) {
      const path = freshPath();
      await mustPut(server(), path, { value: "v", custom: most });
      mustSucceed(await change(path, { custom: most }));
      expect(await shownBy(path)).to.deep.equal({ custom: most });
    }
  });

  const wrong: readonly (readonly [string, unknown])[] = [
    ["a text", "a"],
    ["a list", ["a"]],
    ["a number", { a: 1 }],
    ["an object in it", { a: {} }],
    ["an object in it that has no text", { a: { toString: 1, valueOf: 1 } }],
    ["null in it", { a: null }],
    ["an empty name", { "": "a" }],
    ["a name of 129 bytes", { ["n".repeat(129)]: "a" }],
    ["65 texts", Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`n${i}`, ""]))],
    ["more than 16 KiB", { n: "a".repeat(16_384) }],
    ["a lone surrogate", { n: "\ud800" }],
    ["a lone surrogate in a name", { "\ud800": "n" }],
  ];
  for (const [what, value] of wrong) {
    it(`refuses custom metadata: ${what}`, async () => {
      const path = freshPath();
      const body = { value: "v", custom: value };
      mustRefuse(await send(server(), { method: "PUT", path: `/v1/secrets/${path}`, body }), 400, "BAD_REQUEST");
      const operations = [{ put: path, ...body }];
      mustRefuse(await send(server(), { method: "POST", path: "/v1/batch", body: { operations } }), 400, "BAD_REQUEST");
      await mustPut(server(), path, "v");
      mustRefuse(await change(path, { custom: value }), 400, "BAD_REQUEST");
    });
  }

  it("custom metadata of Vault's clients is the native one, and stays when they write or destroy data", async () => {
    const path = freshPath();
    await mustPut(server(), path, { value: "v", description: "d", custom: { a: "1", b: "2" } });
    await asVault("PATCH", `metadata/${path}`, { custom_metadata: { a: null, c: "3" }, max_versions: 3 });
    expect(await shownBy(path)).to.deep.equal({ description: "d", custom: { b: "2", c: "3" } });
    await asVault("POST", `data/${path}`, { data: { value: "w" } });
    expect(await shownBy(path)).to.deep.equal({ description: "d", custom: { b: "2", c: "3" } });
    await asVault("POST", `destroy/${path}`, { versions: [2] });
    await asVault("POST", `data/${path}`, { data: { value: "x" } });
    expect(await shownBy(path)).to.deep.equal({ custom: { b: "2", c: "3" } });
    await mustPut(server(), path, "y");
    const { data } = await asVault("GET", `metadata/${path}`);
    expect(data).to.deep.include({ custom_metadata: null, max_versions: 3, current_version: 4 });
  });

  it("custom metadata that an earlier program sealed with Vault's settings is shown, moved and changed", async () => {
    const home = preparedHome();
    for (const [name, content] of Object.entries(earlierHome)) {
      mkdirSync(dirname(join(home, name)), { recursive: true, mode: 0o700 });
      writeFileSync(join(home, name), Buffer.from(content, "base64"), { mode: 0o600 });
    }
    const earlier = withPort(await startTestServer({ home, vaultPort: 0 }));
    await mustUnlock(earlier);
    const metadata = { description: "d", custom: { owner: "ci", ü: "1" } };
    expect(await mustGet(earlier, "kv/a")).to.deep.include({ value: "w", metadata, version: 2 });
    expect((await mustList(earlier))[0]?.metadata).to.deep.equal(metadata);
    const operations = [{ move: "kv/a", to: "kv/b" }];
    mustSucceed(await send(earlier, { method: "POST", path: "/v1/batch", body: { operations } }));
    expect(await mustGet(earlier, "kv/b")).to.deep.include({ value: "w", metadata });
    const { data } = (await vault(earlier, "GET", "secret/metadata/kv/b")).json;
    expect(data).to.deep.include({ custom_metadata: metadata.custom, max_versions: 3 });
    await mustPut(earlier, "kv/b", "x");
    expect((await mustGet(earlier, "kv/b"))["metadata"]).to.deep.equal({});
  });
});

/** Made by the last program that sealed custom metadata with the settings of Vault's clients: files in base64. */
const earlierHome: Readonly<Record<string, string>> = {
  "vault/current": "Z2VuLTEK",
  "vault/gen-1/header.json": [
    "eyJmb3JtYXQiOiJzdHJvbmdyb29tIiwidmVyc2lvbiI6MiwidmF1bHRJZCI6Ikh1Rkw0THV6SUMwWmJjNjlsVmlaQkEiLCJjcmVhdGVk",
    "QXQiOiIyMDI2LTExLTI4VDA2OjI5OjIyLjk1NFoiLCJzcGFjZXMiOlsic2VjcmV0cyIsInRyYXNoIiwia2V5cyJdLCJzbG90cyI6W3si",
    "a2luZCI6InBhc3NwaHJhc2UiLCJjcmVhdGVkQXQiOiIyMDI2LTExLTI4VDA2OjI5OjIyLjk1NFoiLCJrZGYiOnsibmFtZSI6InNjcnlw",
    "dCIsImxvZ04iOjEwLCJyIjo4LCJwIjoxLCJzYWx0IjoiNjkxNC0yTDgyRVhuTDRWS1Vyd3ZrQSJ9LCJ3cmFwcGVkS2V5IjoiSHY3ZjRo",
    "SUFIUlRwT0pHTkkxVG5sTWNCZ3djU0hMWlQ5MVYtY1NFVmNvYyIsImNoZWNrIjoidDFPeDNxcFpYLVNJNEFDUjJnOFA5b0ZLaGctV085",
    "SUJRZ2NGNlR1SC1TcyJ9XSwibWFjIjoiZEhzU1ZyTUlvUHR5TXF3aDByNDRXekxRZjRncUgycnNxQ1NDMlFQeUx2dyJ9Cg==",
  ].join(""),
  "vault/gen-1/secrets/kv/a.sealed": [
    "U1JWQgMAAAEOGF1ReLC6RWF3wkrzDtakJNN0hFWB/7+L7H1V9u/l+ZXB92JZuftt3Asf4A7nuoz/liaf9FFeLp4f2YNimYKnSwk+H/xo",
    "ffXL/IfRm6kFLdgtO76ns4FxYM0SD9gZZYFp89Kytw7qblLEMxgnn36RzWeWImvprqc8feDHXBEpjxcaPpPyp/0N3h/FwsVAr9/WYB92",
    "tYEIMlxS43YpNAAEqu2YbHq2zCX8rRE7R9rQ9MNXrQTcjojqrr+Gp04rEyKHGDfWw67rt2xwqo12sz0gmWGKBLafHWA1mWDW14gTixiA",
    "e+5tmQfQihbXiinYEPE7Jl8mwh4ad6dOy6lakPR4/SuITNoTkHVqQ08xi15KAAAAK2Cgyl7HR3AbGusVeRTba1u7zixzufRJrug548fP",
    "nCwX+s84EGZYGSWyANEAAAEOkj8/vKe1U2V9AKg8PhjNvpVtM6yEWLtidH1gOEjMT5TUaHOS6M7UY2gonWvTBvuB7mz4U0GmoI3lr0rt",
    "sF1WsFrOjYDgconulr0zO4FRZZkcSqLtt++D0aaKjLZkRGnWpUrg3X7aZWMCdUaHapD7ANIW2hMuJwHvYCprh8UllIpv5alAtypMraRN",
    "jjV2WaFB39Fy+zqo9RC6T3nWsakSM8KGt963YP1yL2Ukg6iXIWP6ruO2HR7Y604IGtsUrpeRMfJuaTKreCQbjRJU2EmxZTyJQWqZ4Bx1",
    "k5om/35vTZl9p614U2ppvL7zGelG6qHNc6XiMogwp32ma2BEfgdevHREZ+Vuzg9OELJj/z8wAAAAK0fJ+zxs0jhzglbZfuxOXjaavC80",
    "Pz8QswIu/T9QR4Q418jcLy65WNfWfMc=",
  ].join(""),
};
