/** Times of expiry, for which the metadata of all secrets is opened. */
import { expect } from "chai";
import { expiries, seal } from "../../workers/operations/secrets.js";
import type { ResultOf } from "../../workers/protocol.js";
import { type Context, keyWorkerHere, must } from "../support/key-worker.js";
import { stringsMadeBy } from "../support/made-strings.js";

/** Returns the secret's head. */
function sealed(context: Context, path: string, fields: object): string {
  const text = new TextEncoder().encode(JSON.stringify({ value: "v", ...fields }));
  const body = new Uint8Array(new ArrayBuffer(text.length));
  body.set(text);
  const { blob } = must<ResultOf<"seal">>(seal(context, { op: "seal", path, body, previous: null, now: 0 }));
  return Buffer.from(blob).toString("latin1");
}

describe("times of expiry", () => {
  it("are those of the metadata, and the metadata of secrets without one becomes no string", async () => {
    const { context } = await keyWorkerHere();
    const time = "2030-01-01T00:00:00.000Z";
    const description = 'no time: {"expiresAt":"2031-01-01T00:00:00.000Z"}';
    const fields = [{ description: "alone" }, { expiresAt: time }, { description }, { description, expiresAt: time }];
    const paths = fields.map((_, i) => `p/${i}`);
    const heads = fields.map((one, i) => sealed(context, `p/${i}`, one));
    let found: unknown;
    const made = stringsMadeBy(() => {
      found = expiries(context, { op: "expiries", paths: [...paths, "damaged"], heads: [...heads, ""] });
    });
    expect(found).to.deep.equal({ ok: true, times: [null, Date.parse(time), null, Date.parse(time), null] });
    expect(made.filter((text) => text.includes("alone"))).to.deep.equal([]);
  });
});
