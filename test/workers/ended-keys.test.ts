/** All that the key worker has made with the master key of a vault ends with that key, however it ends. */
import { expect } from "chai";
import { load, lock } from "../../workers/operations/lifecycle.js";
import { createTransitKey, useTransitKey } from "../../workers/operations/transit.js";
import type { Bytes, ResultOf } from "../../workers/protocol.js";
import { type Context, initHere, keyWorkerHere, must, sharedBytes } from "../support/key-worker.js";

/** Returns the public key of a transit key that has signed. */
async function signed(context: Context): Promise<string> {
  const create = { op: "createTransitKey", name: "k", exists: false, now: 0 } as const;
  const made = await createTransitKey(context, { ...create, body: sharedBytes('{"type":"ed25519"}') });
  const { blob, response } = must<ResultOf<"createTransitKey">>(made);
  const body = sharedBytes('{"input":"YQ=="}');
  must(await useTransitKey(context, { op: "useTransitKey", use: "sign", name: "k", blob, body }));
  return JSON.parse(new TextDecoder().decode(response)).versions[1].publicKey;
}

describe("parsed private keys of transit keys", () => {
  const endings: Readonly<Record<string, (context: Context, header: Bytes) => unknown>> = {
    "of a lock": (context) => lock(context, { op: "lock" }),
    "of a header that is loaded": (context, header) => load(context, { op: "load", header }),
    "of another vault in its place": initHere,
  };
  for (const [name, end] of Object.entries(endings)) {
    it(`parsed private keys end with the master key because ${name}`, async () => {
      const { context, header } = await keyWorkerHere();
      const publicKey = await signed(context);
      const isHeld = () => {
        try {
          context.transit.privateKeys.get(publicKey, "ed25519", () => {
            throw new Error("not held");
          });
          return true;
        } catch {
          return false;
        }
      };
      expect(isHeld()).to.equal(true);
      await end(context, header);
      expect(isHeld()).to.equal(false);
    });
  }
});
