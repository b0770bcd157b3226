/**
 * Existence outside of a token's paths: what is there and what is not get the same response, and cost the same work: no call of
 * storage, and the same messages to the key worker.
 */
import { expect } from "chai";
import { scopes } from "../../src/contract/names.js";
import { shared } from "../../tools/rig/clean-up.js";
import { uncached } from "../../tools/rig/server.js";
import { mustCreateToken, mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";
import { startVaultServer } from "../../tools/rig/vault-client.js";
import { FakeClock } from "../support/manual-clock.js";
import { ask, type Rig } from "../support/request-rig.js";
import { type ApiRequest, allRequests, forms, namesOne, there as samples } from "../support/requests.js";
import { ShiftedClock } from "../support/shifted-clock.js";

/** The first path has a secret, a deleted secret and a key, the second has nothing. The token `full` exists, `none` does not. */
const [there, missing] = ["out/full", "out/none"];

describe("outside of a token's paths", () => {
  const prepared = shared(async () => {
    const calls: string[] = [];
    const observer = {
      storageReturned: (call: string) => calls.push(`storage ${call}`),
      keyWorkerResponded: () => calls.push("key worker"),
    };
    const server = await startVaultServer({ ...uncached, clock: new FakeClock(), observer });
    await mustPut(server, there, "1");
    mustSucceed(await send(server, { method: "POST", path: `/v1/trash/${there}` }));
    for (const path of ["app/json", there]) await mustPut(server, path, "1");
    mustSucceed(await send(server, { method: "POST", path: `/v1/transit/keys/${there}`, body: {} }));
    const { token: other } = await mustCreateToken(server, { name: "full", can: ["get"] });
    const { token } = await mustCreateToken(server, { name: "blind", can: [...scopes], paths: ["app/"] });
    const rig: Rig = { server, clock: new ShiftedClock(), tokens: new Map() };
    return { rig, calls, token, other };
  });

  const varying = ["date", "x-request-id", "connection"];

  /** Returns the response without its varying headers and request id, and what was called for it. */
  async function observe(row: ApiRequest, exists: boolean) {
    const { rig, calls, token, other } = prepared();
    const changed = `${other.slice(0, -1)}${other.endsWith("A") ? "B" : "A"}`;
    const [path, name, value] = exists ? [there, "full", other] : [missing, "none", changed];
    const subject = row.subject === samples.token ? name : row.subject && path;
    const sample = { ...row, subject, body: row.body && JSON.parse(JSON.stringify(row.body).replace("{own}", value)) };
    calls.length = 0;
    const response = await ask(rig, sample, { token });
    const shown = Object.entries(JSON.parse(response.head)).filter(([header]) => !varying.includes(header));
    const text = response.text.replace(/"request_?[iI]d":"[^"]*"/, "");
    return { status: response.status, headers: shown, text, calls: [...calls] };
  }

  const rows = [...allRequests, ...forms].filter((row) => namesOne(row) || JSON.stringify(row.body).includes("{own}"));
  for (const row of rows) {
    const { method, target, port, body } = row;
    it(`the ${port} port does not reveal existence: ${method} ${target}${body ? ` ${JSON.stringify(body)}` : ""}`, async () => {
      const [present, absent] = [await observe(row, true), await observe(row, false)];
      expect(present).to.deep.equal(absent);
      expect(present.calls.filter((call) => call.startsWith("storage"))).to.deep.equal([]);
    });
  }
});
