/** What the key worker has made with the master key of a vault ends with that key, however it ends. */
import { expect } from "chai";
import { newContext } from "../../workers/operations/key-worker.js";
import { adopt, init, load, lock } from "../../workers/operations/lifecycle.js";
import { createTransitKey, useTransitKey } from "../../workers/operations/transit.js";
import type { Bytes, ResultOf } from "../../workers/protocol.js";
import { sharedBytes } from "../support/key-worker.js";
import { passphrase, testScryptLogN } from "../support/server.js";

const settings = { maxValueBytes: 1024, keepVersions: 0, keepVersionBytes: 0, minScryptLogN: testScryptLogN };
type Context = ReturnType<typeof newContext>;

function must<R extends { readonly ok: boolean }>(result: R): Extract<R, { readonly ok: true }> {
  expect(result).to.include({ ok: true });
  return result as Extract<R, { readonly ok: true }>;
}

async function startVault(context: Context): Promise<Bytes> {
  const body = sharedBytes(JSON.stringify({ passphrase, force: true }));
  const { header } = must<ResultOf<"init">>(await init(context, { op: "init", body, logN: testScryptLogN, now: 0 }));
  must(adopt(context));
  return header;
}

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
    "of another vault in its place": startVault,
  };
  for (const [name, end] of Object.entries(endings)) {
    it(`end with the master key because ${name}`, async () => {
      const context = newContext(settings, new Int32Array(new SharedArrayBuffer(4)));
      must(load(context, { op: "load", header: null }));
      const header = await startVault(context);
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
