/** KV, version 2, on the port for Vault's clients: the engine's rules, and what the native API makes of them. */
import { expect } from "chai";
import { systemClock } from "../../src/clock.js";
import { shareTestServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustList, mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";
import {
  startVaultServer,
  type VaultResponse,
  type VaultServer,
  vault,
  withPort,
} from "../../tools/rig/vault-client.js";

describe("KV for Vault's clients", () => {
  const shared = shareTestServer({ vaultPort: 0 }, mustInit);
  const server = (): VaultServer => withPort(shared());

  let paths = 0;
  const freshPath = () => `t${++paths}/secret`;

  async function must(method: string, path: string, body?: object, status = 200): Promise<VaultResponse["json"]> {
    const answer = await vault(server(), method, path, { ...(body && { body }) });
    expect(answer.status, `${method} ${path}: ${answer.text}`).to.equal(status);
    return answer.json;
  }

  const write = (path: string, data: object, options?: object) =>
    must("POST", `secret/data/${path}`, { data, ...(options && { options }) });
  const read = async (path: string, query = "") => (await must("GET", `secret/data/${path}${query}`)).data;
  const native = (path: string) => send(server(), { path: `/v1/secrets/${path}` });

  describe("data", () => {
    it("data is read as it was written, with the envelope and metadata that clients expect", async () => {
      const path = freshPath();
      const written = await write(path, { user: "root", port: 5432, nested: { a: [1, null, "ü\u0000"] } });
      expect(written.data).to.include({ version: 1, deletion_time: "", destroyed: false, custom_metadata: null });
      const { data, ...envelope } = await must("GET", `secret/data/${path}`);
      expect(data.data).to.deep.equal({ user: "root", port: 5432, nested: { a: [1, null, "ü\u0000"] } });
      expect(data.metadata).to.deep.equal(written.data);
      expect(envelope).to.include({ lease_id: "", renewable: false, lease_duration: 0, wrap_info: null, auth: null });
      expect(envelope.request_id).to.match(/^[0-9a-f-]{36}$/);
    });

    const values: readonly (readonly [string, object, object])[] = [
      ["a text", { value: "geheim ✓" }, { value: "geheim ✓" }],
      ["an empty text", { value: "" }, { value: "" }],
      ["a number", { value: 5 }, { value: '{"value":5}' }],
      ["an object", { a: "b" }, { value: '{"a":"b"}' }],
      ["no members", {}, { value: "{}" }],
      ["two members of which one is value", { value: "x", other: "y" }, { value: '{"value":"x","other":"y"}' }],
      ["binary", { value: "AP+AfQ==", encoding: "base64" }, { value: "AP+AfQ==", encoding: "base64" }],
      [
        "base64 of another spelling",
        { value: "AP-AfQ", encoding: "base64" },
        { value: '{"value":"AP-AfQ","encoding":"base64"}' },
      ],
      ["a text that is an object", { value: '{"a":1}' }, { value: '{"a":1}' }],
      ["1 MiB of text", { value: "ü".repeat(2 ** 19) }, { value: "ü".repeat(2 ** 19) }],
    ];
    for (const [what, data, stored] of values) {
      it(`data that holds ${what} is the value of the native API`, async () => {
        const path = freshPath();
        await write(path, data);
        expect((await read(path)).data).to.deep.equal(data);
        const { value, encoding } = await mustGet(server(), path);
        expect({ value, ...(encoding !== undefined && { encoding }) }).to.deep.equal(stored);
      });
    }

    const puts: readonly (readonly [string, object, object])[] = [
      ["a text", { value: "plain" }, { value: "plain" }],
      ["a text that is an object", { value: ' {"a": {"b": 1}}\n' }, { a: { b: 1 } }],
      ["a text that looks like an object", { value: '{"a":' }, { value: '{"a":' }],
      ["an array", { value: "[1]" }, { value: "[1]" }],
      ["binary", { value: "AAEC", encoding: "base64" }, { value: "AAEC", encoding: "base64" }],
      ["unicode", { value: "\u{1f511}\n\t" }, { value: "\u{1f511}\n\t" }],
    ];
    for (const [what, put, data] of puts) {
      it(`a native put of ${what} is read as data`, async () => {
        const path = freshPath();
        await mustPut(server(), path, put);
        expect((await read(path)).data).to.deep.equal(data);
      });
    }

    it("each write makes a version, also an equal one, and keeps native type and description", async () => {
      const path = freshPath();
      await mustPut(server(), path, { value: "1", type: "password", description: "d" });
      await write(path, { value: "1" });
      expect((await write(path, { value: "1" })).data.version).to.equal(3);
      expect(await mustGet(server(), path)).to.deep.include({
        version: 3,
        metadata: { type: "password", description: "d" },
      });
      expect((await read(path, "?version=1")).metadata.version).to.equal(1);
      expect((await vault(server(), "GET", `secret/data/${path}?version=9`)).status).to.equal(404);
    });

    it('data {"value": text} keeps its form through versions, an undo, a move and a metadata change', async () => {
      const path = freshPath();
      await write(path, { value: '{"a":1}' });
      await write(path, { value: "2" });
      const json = { method: "POST", path: `/v1/versions/${path}`, body: { version: 1 } };
      expect((await send(server(), json)).status).to.equal(200);
      expect((await read(path)).data).to.deep.equal({ value: '{"a":1}' });
      await send(server(), {
        method: "POST",
        path: "/v1/batch",
        body: { operations: [{ move: path, to: `${path}2` }] },
      });
      await send(server(), { method: "PATCH", path: `/v1/metadata/${path}2`, body: { type: "other" } });
      expect((await read(`${path}2`)).data).to.deep.equal({ value: '{"a":1}' });
      await mustPut(server(), `${path}2`, '{"a":2}');
      expect((await read(`${path}2`)).data).to.deep.equal({ a: 2 });
    });

    it("cas is checked against the current version, with the messages that clients look for", async () => {
      const path = freshPath();
      await write(path, { a: "1" }, { cas: 0 });
      for (const cas of [1.5, "one", 1e21]) {
        const { errors } = await must("POST", `secret/data/${path}`, { data: { a: "2" }, options: { cas } }, 400);
        expect(errors[0]).to.match(/^error parsing check-and-set parameter/);
      }
      for (const cas of [-1, null]) {
        const { errors } = await must("POST", `secret/data/${path}`, { data: { a: "2" }, options: { cas } }, 400);
        expect(errors).to.deep.equal(["check-and-set parameter did not match the current version"]);
      }
      const second = { data: { a: "2" }, options: { cas: 0 } };
      const refused = await must("POST", `secret/data/${path}`, second, 400);
      expect(refused.errors).to.deep.equal(["check-and-set parameter did not match the current version"]);
      await write(path, { a: "2" }, { cas: 1 });
      await must("POST", `secret/metadata/${path}`, { cas_required: true }, 204);
      const required = await must("PUT", `secret/data/${path}`, { data: { a: "3" } }, 400);
      expect(required.errors).to.deep.equal(["check-and-set parameter required for this call"]);
      await write(path, { a: "3" }, { cas: "2" });
    });

    it("exactly one of many writers with the same cas succeeds", async () => {
      const path = freshPath();
      const body = { data: { a: "1" }, options: { cas: 0 } };
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => vault(server(), "POST", `secret/data/${path}`, { body })),
      );
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, ...Array<number>(7).fill(400)]);
    });

    it("a patch is merged, and gets 404 where there is no data", async () => {
      const path = freshPath();
      await write(path, { a: "1", b: { c: "2", d: null }, e: [1] });
      const headers = { "content-type": "application/merge-patch+json" };
      const patch = (data: object) => vault(server(), "PATCH", `secret/data/${path}`, { body: { data }, headers });
      expect((await patch({ a: null, b: { c: "3", f: { g: null, h: 1 } }, "k\n": true })).json.data.version).to.equal(
        2,
      );
      expect((await read(path)).data).to.deep.equal({ b: { c: "3", d: null, f: { h: 1 } }, e: [1], "k\n": true });
      await must("PATCH", `secret/data/${freshPath()}`, { data: { a: "1" } }, 404);
    });

    it("a body without valid data is refused, and not repeated", async () => {
      const path = freshPath();
      for (const body of [
        "",
        "x",
        "[]",
        "{}",
        '{"data":"s3cret"}',
        '{"data":null}',
        '{"data":{},"options":{"cas":"s3cret"}}',
      ]) {
        const { status, text } = await vault(server(), "POST", `secret/data/${path}`, { body });
        expect(status, body).to.equal(400);
        expect(text).not.to.contain("s3cret");
      }
      const large = await vault(server(), "POST", `secret/data/${path}`, {
        body: { data: { value: "x".repeat(2 ** 20 + 1) } },
      });
      expect([large.status, large.json.errors[0]]).to.deep.equal([400, "data must have at most 1048576 bytes of JSON"]);
    });
  });

  describe("versions", () => {
    it("versions are deleted, undeleted and destroyed, also for the native API", async () => {
      const path = freshPath();
      await write(path, { a: "1" });
      await write(path, { a: "2" });
      await must("DELETE", `secret/data/${path}`, undefined, 204);
      const gone = await must("GET", `secret/data/${path}`, undefined, 404);
      expect(gone.data.data).to.equal(null);
      expect(gone.data.metadata).to.include({ version: 2, destroyed: false });
      expect(gone.data.metadata.deletion_time).to.match(/^\d{4}-.*Z$/);
      expect((await native(path)).status).to.equal(404);
      expect((await mustList(server(), `?prefix=${path}`)).length).to.equal(0);
      expect((await must("LIST", `secret/metadata/${path.split("/")[0]}`)).data.keys).to.deep.equal(["secret"]);
      expect((await read(path, "?version=1")).data).to.deep.equal({ a: "1" });
      await must("POST", `secret/undelete/${path}`, { versions: ["2"] }, 204);
      expect((await read(path)).data).to.deep.equal({ a: "2" });
      await must("PUT", `secret/destroy/${path}`, { versions: [2, 7] }, 204);
      await must("POST", `secret/undelete/${path}`, { versions: [2] }, 204);
      expect((await must("GET", `secret/data/${path}`, undefined, 404)).data.metadata).to.include({
        destroyed: true,
        version: 2,
      });
      expect((await write(path, { a: "3" })).data.version).to.equal(3);
      expect((await native(path)).json["version"]).to.equal(3);
    });

    it("changes of versions return 204 where there is nothing, as in Vault, and 400 without numbers", async () => {
      const path = freshPath();
      await must("DELETE", `secret/data/${path}`, undefined, 204);
      await must("POST", `secret/delete/${path}`, { versions: [1] }, 204);
      await must("DELETE", `secret/metadata/${path}`, undefined, 204);
      for (const versions of [undefined, null, "", [], ["x"], "x", "1,x", 0, -1, true, {}, [0], [[1]]])
        await must("POST", `secret/destroy/${path}`, { versions }, 400);
      for (const versions of [1, "1", "1,2", " 1 , 2 ", ["1", 2]])
        await must("POST", `secret/delete/${path}`, { versions }, 204);
    });

    it("versions end with delete_version_after, on both ports", async () => {
      let skew = 0;
      const clock = { ...systemClock, now: () => Date.now() + skew, elapsed: () => systemClock.elapsed() };
      const own = await startVaultServer({ clock: Object.assign(Object.create(systemClock), clock), idleTimeoutMs: 0 });
      const path = "a/b";
      expect(
        (await vault(own, "POST", `secret/metadata/${path}`, { body: { delete_version_after: "1h0m30s" } })).status,
      ).to.equal(204);
      const { json } = await vault(own, "POST", `secret/data/${path}`, { body: { data: { value: "x" } } });
      expect(Date.parse(json.data.deletion_time) - Date.parse(json.data.created_time)).to.equal(3_630_000);
      expect((await vault(own, "GET", `secret/data/${path}`)).status).to.equal(200);
      expect((await mustGet(own, path))["value"]).to.equal("x");
      skew = 3_700_000;
      expect((await vault(own, "GET", `secret/data/${path}`)).status).to.equal(404);
      expect((await send(own, { path: `/v1/secrets/${path}` })).status).to.equal(404);
      expect(await mustList(own)).to.deep.equal([]);
    });
  });

  describe("lists", () => {
    it("a list ends where a page is full of names that sort after their folder's end", async () => {
      const folder = freshPath();
      const names = Array.from({ length: 1001 }, (_, n) => `${folder}/deep/\u{10ffff}${n}`);
      for (const paths of [names.slice(0, 1000), [...names.slice(1000), `${folder}/last`]]) {
        const operations = paths.map((path) => ({ put: path, value: "v" }));
        mustSucceed(await send(server(), { method: "POST", path: "/v1/batch", body: { operations } }));
      }
      expect((await must("LIST", `secret/metadata/${folder}`)).data.keys).to.deep.equal(["deep/", "last"]);
    });
  });

  describe("metadata", () => {
    it("KV metadata is kept before there is any data, and is missing natively", async () => {
      const path = freshPath();
      const custom_metadata = { owner: "ci", ü: "1" };
      await must("POST", `secret/metadata/${path}`, { custom_metadata, max_versions: 3 }, 204);
      const { data } = await must("GET", `secret/metadata/${path}`);
      expect(data).to.deep.include({
        custom_metadata,
        max_versions: 3,
        current_version: 0,
        oldest_version: 0,
        versions: {},
      });
      expect((await native(path)).status).to.equal(404);
      expect((await send(server(), { path: `/v1/versions/${path}` })).status).to.equal(404);
      await must("GET", `secret/data/${path}`, undefined, 404);
      await write(path, { a: "1" }, { cas: 0 });
      expect((await read(path)).metadata).to.deep.include({ custom_metadata, version: 1 });
      for (const a of ["2", "3", "4", "5"]) await write(path, { a });
      const after = (await must("GET", `secret/metadata/${path}`)).data;
      expect(Object.keys(after.versions)).to.deep.equal(["3", "4", "5"]);
      expect(after).to.include({
        current_version: 5,
        oldest_version: 3,
        delete_version_after: "0s",
        cas_required: false,
      });
    });

    it("KV metadata is patched, and a native put keeps all but the custom metadata", async () => {
      const path = freshPath();
      await mustPut(server(), path, "1");
      await must(
        "POST",
        `secret/metadata/${path}`,
        { custom_metadata: { a: "1", b: "2" }, cas_required: true, max_versions: 4 },
        204,
      );
      await must("PATCH", `secret/metadata/${path}`, { custom_metadata: { a: null, c: "3" }, cas_required: null }, 204);
      const patched = (await must("GET", `secret/metadata/${path}`)).data;
      expect(patched).to.deep.include({ custom_metadata: { b: "2", c: "3" }, cas_required: false, max_versions: 4 });
      await mustPut(server(), path, "2");
      const { data } = await must("GET", `secret/metadata/${path}`);
      expect(data).to.deep.include({ custom_metadata: null, max_versions: 4, current_version: 2 });
      await must("PATCH", `secret/metadata/${freshPath()}`, { max_versions: 1 }, 404);
    });

    it("invalid settings of KV metadata are refused", async () => {
      const path = freshPath();
      const wrong = [
        { max_versions: -1 },
        { cas_required: "yes" },
        { delete_version_after: "soon" },
        { custom_metadata: { a: [1] } },
        { custom_metadata: { a: null } },
        { custom_metadata: { a: "" } },
        { custom_metadata: { "": "a" } },
        { custom_metadata: { a: "line\nbreak" } },
        { custom_metadata: { ["k".repeat(129)]: "1" } },
        { custom_metadata: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${i}`, "1"])) },
      ];
      for (const body of wrong) await must("POST", `secret/metadata/${path}`, body, 400);
      await must("GET", `secret/metadata/${path}`, undefined, 404);
    });

    it("KV metadata takes texts for numbers and booleans, and shows empty custom metadata as null", async () => {
      const path = freshPath();
      const texts = { max_versions: "3", cas_required: "true", delete_version_after: 60 };
      await must("POST", `secret/metadata/${path}`, { ...texts, custom_metadata: { a: 1.5, b: true, c: "d" } }, 204);
      expect((await must("GET", `secret/metadata/${path}`)).data).to.deep.include({
        ...{ max_versions: 3, cas_required: true, delete_version_after: "1m0s" },
        custom_metadata: { a: "1.5", b: "1", c: "d" },
      });
      await must("POST", `secret/metadata/${path}`, { custom_metadata: {} }, 204);
      expect((await must("GET", `secret/metadata/${path}`)).data.custom_metadata).to.equal(null);
    });

    it("KV metadata ignores names that every object has, like any other unknown one", async () => {
      const path = freshPath();
      await must("POST", `secret/metadata/${path}`, { max_versions: 2 }, 204);
      const before = await must("GET", `secret/metadata/${path}`);
      for (const name of ["__proto__", "constructor", "toString", "valueOf", "hasOwnProperty"]) {
        const body = `{"${name}":{"maxVersions":-7,"casRequired":"no","custom":{"x":5}}}`;
        expect((await vault(server(), "POST", `secret/metadata/${path}`, { body })).status, name).to.equal(204);
      }
      const { updated_time: _, ...after } = (await must("GET", `secret/metadata/${path}`)).data;
      expect(before.data).to.deep.include(after);
    });

    it("a delete of KV metadata moves the secret to the trash with all versions", async () => {
      const path = freshPath();
      await write(path, { a: "1" });
      await must("DELETE", `secret/metadata/${path}`, undefined, 204);
      await must("GET", `secret/data/${path}`, undefined, 404);
      expect((await send(server(), { method: "POST", path: `/v1/untrash/${path}` })).status).to.equal(200);
      expect((await read(path)).data).to.deep.equal({ a: "1" });
    });

    it("subkeys are shown without values", async () => {
      const path = freshPath();
      await write(path, { a: "1", b: { c: { d: "2" } }, e: [{ f: 1 }] });
      const subkeys = async (query = "") => (await must("GET", `secret/subkeys/${path}${query}`)).data.subkeys;
      expect(await subkeys()).to.deep.equal({ a: null, b: { c: { d: null } }, e: null });
      expect(await subkeys("?depth=1")).to.deep.equal({ a: null, b: null, e: null });
      expect(await subkeys("?depth=2&version=1")).to.deep.equal({ a: null, b: { c: null }, e: null });
    });
  });
});
