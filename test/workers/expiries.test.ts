/** Times of expiry, for which the metadata of all secrets is opened. */
import { expect } from "chai";
import { check } from "../../workers/operations/versions.js";
import { write } from "../../workers/operations/write.js";
import type { Bytes, ResultOf } from "../../workers/protocol.js";
import { type Context, keyWorkerHere, must } from "../support/key-worker.js";
import { stringsMadeBy } from "../support/made-strings.js";

function sealed(context: Context, path: string, fields: object): Bytes {
  const text = new TextEncoder().encode(JSON.stringify({ value: "v", ...fields }));
  const body = new Uint8Array(new ArrayBuffer(text.length));
  body.set(text);
  const made = must<ResultOf<"write">>(
    write(context, { op: "write", kind: "put", path, body, previous: null, reread: false }),
  );
  return made.blob ?? new Uint8Array();
}

describe("times of expiry", () => {
  it("a blob's time of expiry is that of its metadata, and metadata without one becomes no string", async () => {
    const { context } = await keyWorkerHere();
    const time = "2030-01-01T00:00:00.000Z";
    const description = 'no time: {"expiresAt":"2031-01-01T00:00:00.000Z"}';
    const fields = [{ description: "alone" }, { expiresAt: time }, { description }, { description, expiresAt: time }];
    const blobs = fields.map((one, i) => sealed(context, `p/${i}`, one));
    let found: unknown;
    const made = stringsMadeBy(() => {
      found = blobs.map(
        (blob, i) => must<ResultOf<"check">>(check(context, { op: "check", path: `p/${i}`, blob })).expiresAt,
      );
    });
    expect(found).to.deep.equal([null, Date.parse(time), null, Date.parse(time)]);
    expect(made.filter((text) => text.includes("alone"))).to.deep.equal([]);
  });
});
