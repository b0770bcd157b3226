/**
 * Existence outside of a token's paths: what is there and what is not get the same response, and cost the same work: no call of
 * storage, and the same messages to the key worker.
 */
import { expect } from "chai";
import { scopes } from "../../src/contract/names.js";
import { shared } from "../../tools/rig/clean-up.js";
import { uncached } from "../../tools/rig/server.js";
import { mustCreateToken, mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";
import { startVaultServer, vault } from "../../tools/rig/vault-client.js";
import { FakeClock } from "../support/manual-clock.js";

type Row = readonly [method: string, at: string, body?: object | undefined, headers?: Readonly<Record<string, string>>];

/** Of the paths that `P` stands for, one has a secret, a deleted secret, a key and a token, the other has nothing. */
const [there, missing] = ["out/full", "out/none"];

const ifMatch = { "if-match": '"AAAAAAAAAAAAAAAA"' };
const message = "aGVsbG8=";
const batchOf = (...operations: readonly object[]) => ({ operations });

// biome-ignore format: the formatter would give each member a line of its own, and rows could not be compared
const native: readonly Row[] = [
  ["GET", "secrets/P"], ["GET", "secrets/P", undefined, { "if-none-match": '"AAAAAAAAAAAAAAAA"' }],
  ["PUT", "secrets/P", { value: "1" }], ["PUT", "secrets/P", { value: "1" }, ifMatch], ["PUT", "secrets/P", { value: 1 }],
  ["DELETE", "secrets/P"], ["DELETE", "secrets/P", undefined, ifMatch], ["PATCH", "metadata/P", { type: "password" }],
  ["GET", "versions/P"], ["GET", "versions/P?version=1"], ["POST", "versions/P", { version: 1 }],
  ["DELETE", "versions/P"], ["DELETE", "versions/P?version=1"],
  ["POST", "trash/P"], ["POST", "untrash/P"], ["DELETE", "trash/P"], ["POST", "otp/P"],
  ["GET", "secrets?prefix=P"], ["GET", "trash?prefix=P"], ["POST", "check", { prefix: "P" }],
  ["POST", "batch", batchOf({ get: "P" })], ["POST", "batch", batchOf({ put: "P", value: "1" })],
  ["POST", "batch", batchOf({ delete: "P" })], ["POST", "batch", batchOf({ trash: "P" })],
  ["POST", "batch", batchOf({ move: "P", to: "in/y" })], ["POST", "batch", batchOf({ move: "in/x", to: "P" })],
  ["POST", "batch", batchOf({ copy: "P", to: "in/y" })], ["POST", "batch", batchOf({ put: "in/y", value: "1" }, { delete: "P" })],
  ["GET", "transit/keys/P"], ["POST", "transit/keys/P", {}], ["DELETE", "transit/keys/P"],
  ["POST", "transit/keys/P/rotate", {}], ["POST", "transit/keys/P/config", { deletionAllowed: true }],
  ["GET", "transit/export/P"],
  ["POST", "transit/encrypt/P", { plaintext: message }], ["POST", "transit/decrypt/P", { ciphertext: "vault:v1:AAAA" }],
  ["POST", "transit/rewrap/P", { ciphertext: "vault:v1:AAAA" }], ["POST", "transit/sign/P", { input: message }],
  ["POST", "transit/verify/P", { input: message, hmac: "vault:v1:AAAA" }], ["POST", "transit/hmac/P", { input: message }],
  ["POST", "transit/datakey/P", {}],
  ["GET", "uses/P"], ["DELETE", "uses/P?host=a.example"],
  ["POST", "tokens/T", { overlapSeconds: 0 }], ["DELETE", "tokens/T"],
];

const data = { data: { value: "1" } };

// biome-ignore format: as above
const ofVault: readonly Row[] = [
  ["GET", "secret/data/P"], ["GET", "secret/data/P?version=1"], ["GET", "secret/subkeys/P"],
  ["POST", "secret/data/P", data], ["POST", "secret/data/P", { ...data, options: { cas: 0 } }], ["PATCH", "secret/data/P", data],
  ["DELETE", "secret/data/P"], ["POST", "secret/delete/P", { versions: [1] }], ["POST", "secret/undelete/P", { versions: [1] }],
  ["PUT", "secret/destroy/P", { versions: [1] }], ["GET", "secret/metadata/P"], ["LIST", "secret/metadata/P"],
  ["GET", "secret/metadata/P?list=true"], ["POST", "secret/metadata/P", { max_versions: 2 }],
  ["PATCH", "secret/metadata/P", { max_versions: 2 }], ["DELETE", "secret/metadata/P"],
  ["GET", "secret/keys/P"], ["POST", "secret/keys/P", {}], ["DELETE", "secret/keys/P"], ["LIST", "secret/keys/P"],
  ["POST", "secret/keys/P/rotate", {}], ["POST", "secret/encrypt/P", { plaintext: message }],
  ["POST", "secret/decrypt/P", { ciphertext: "vault:v1:AAAA" }], ["POST", "secret/rewrap/P", { ciphertext: "vault:v1:AAAA" }],
  ["POST", "secret/sign/P", { input: message }], ["POST", "secret/verify/P", { input: message, hmac: "vault:v1:AAAA" }],
  ["POST", "secret/hmac/P", { input: message }], ["POST", "secret/datakey/plaintext/P", {}],
  ["POST", "auth/token/lookup", { token: "V" }], ["POST", "auth/token/revoke", { token: "V" }], ["POST", "auth/token/renew", { token: "V" }],
  ["POST", "auth/approle/login", { role_id: "T", secret_id: "srk_wrong" }],
];

describe("existence outside of a token's paths", () => {
  const rig = shared(async () => {
    const calls: string[] = [];
    const observer = {
      storageReturned: (call: string) => calls.push(`storage ${call}`),
      keyWorkerResponded: () => calls.push("key worker"),
    };
    const server = await startVaultServer({ ...uncached, clock: new FakeClock(), observer });
    await mustPut(server, there, "1");
    mustSucceed(await send(server, { method: "POST", path: `/v1/trash/${there}` }));
    for (const path of ["in/x", there]) await mustPut(server, path, "1");
    mustSucceed(await send(server, { method: "POST", path: `/v1/transit/keys/${there}`, body: {} }));
    const { token: other } = await mustCreateToken(server, { name: "full", can: ["get"] });
    const { token } = await mustCreateToken(server, { name: "blind", can: [...scopes], paths: ["in/"] });
    return { server, calls, token, other };
  });

  const names = ["date", "x-request-id", "connection"];

  /** Returns the response but for what each one has of its own, and what was called for it. */
  async function outcomeOf([method, at, body, headers = {}]: Row, isNative: boolean, exists: boolean) {
    const { server, calls, token, other } = rig();
    const changed = `${other.slice(0, -1)}${other.endsWith("A") ? "B" : "A"}`;
    const [path, name, value] = exists ? [there, "full", other] : [missing, "none", changed];
    const named = (text: string) => text.replace(/\bP\b/, path).replace(/\bT\b/, name).replace(/\bV\b/, value);
    const request = { token, headers, ...(body && { body: named(JSON.stringify(body)) }) };
    calls.length = 0;
    const response = isNative
      ? await send(server, { method, path: `/v1/${named(at)}`, ...request })
      : await vault(server, method, named(at), request);
    const shown = Object.entries(response.headers).filter(([name]) => !names.includes(name));
    const text = response.text.replace(/"request_?[iI]d":"[^"]*"/, "");
    return { status: response.status, headers: shown, text, calls: [...calls] };
  }

  for (const [port, rows] of [
    ["native", native],
    ["Vault's", ofVault],
  ] as const) {
    for (const row of rows) {
      const [method, at, body] = row;
      it(`does not show on the ${port} port: ${method} ${at}${body ? ` ${JSON.stringify(body)}` : ""}`, async () => {
        const isNative = port === "native";
        const [present, absent] = [await outcomeOf(row, isNative, true), await outcomeOf(row, isNative, false)];
        expect(present).to.deep.equal(absent);
        expect(present.calls.filter((call) => call.startsWith("storage"))).to.deep.equal([]);
      });
    }
  }
});
