/** Client tokens in a rotation of the master key: from its start on, the old key makes no token valid. */
import { createHash } from "node:crypto";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { type FileOperations, systemFiles } from "../../src/files/durable.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { decodeHeader, decodeKeys, headerText, recordMac } from "../../tools/rig/decoder.js";
import { passphrase, restarted, startTestServer, type TestServer } from "../../tools/rig/server.js";
import {
  mustCreateToken,
  mustInit,
  mustLock,
  mustPut,
  mustRefuse,
  mustUnlock,
  send,
} from "../../tools/rig/test-client.js";
import { failingFiles } from "../support/failing-files.js";
import { formatOutcome, mustRotate, rotating, untilRotated } from "../support/key-requests.js";

const forgedValue = "src_forged-by-someone-with-the-old-key_AAAA";

function documentFile(home: string): string {
  return join(home, "vault", "gen-1", "tokens.document");
}

function get(server: TestServer, token: string) {
  return send(server, { path: "/v1/secrets/a", token });
}

/** Appends the record of a token for everything, signed with the key. */
function appendForged(home: string, key: Uint8Array): void {
  const can = ["get", "put"];
  const record = { name: "forged", can, paths: [], createdAt: 1, ttlSeconds: 0, expiresAt: null };
  const digest = createHash("sha256").update(forgedValue).digest("base64url");
  const mac = recordMac(key, JSON.stringify(["strongroom token 1", "forged", can, [], 1, 0, null, digest, []]));
  const document = JSON.parse(readFileSync(documentFile(home), "utf8"));
  document.tokens.push({ ...record, digest, former: [], mac, lastUsedAt: null });
  writeFileSync(documentFile(home), JSON.stringify(document));
}

async function startWithToken(files: FileOperations = systemFiles) {
  const server = await startTestServer({ files, idleTimeoutMs: 0 });
  await mustInit(server);
  await mustPut(server, "a", "v");
  const { token } = await mustCreateToken(server, { name: "ci", ttlSeconds: 0 });
  return { server, token };
}

/** Copies the home before each change of a name, as a kill there would leave it. */
function copyingFiles(home: () => string) {
  const copies: string[] = [];
  let isCopying = false;
  const copy = () => {
    if (!isCopying) return;
    const to = join(temporaryDirectory(), "home");
    cpSync(home(), to, { recursive: true, filter: (path) => !/server\.(pid|sock|lock)$/.test(path) });
    copies.push(to);
  };
  const rename: FileOperations["rename"] = (from, to) => {
    copy();
    return systemFiles.rename(from, to);
  };
  const during = async (work: () => Promise<unknown>) => {
    isCopying = true;
    await work();
    copy();
    isCopying = false;
  };
  return { files: { ...systemFiles, rename }, copies, during };
}

describe("rotations of the master key", () => {
  it("a token forged with the old key after a rotation is rejected, while the genuine one works", async () => {
    const { server, token } = await startWithToken();
    await mustLock(server); // the rotation does not end
    await mustRotate(server);
    const { oldKey } = decodeHeader(headerText(server.home), passphrase);
    if (oldKey === null) throw new Error("no rotation is under way");
    appendForged(server.home, oldKey);
    const again = await restarted(server);
    await mustUnlock(again);
    mustRefuse(await get(again, forgedValue), 401, "UNAUTHORIZED");
    expect((await get(again, token)).status).to.equal(200);
    await untilRotated(again);
    mustRefuse(await get(again, forgedValue), 401, "UNAUTHORIZED");
    expect((await get(again, token)).status).to.equal(200);
    expect(again.logged()).to.contain('"event":"tokens-refused"');
  });

  it("a token's record that the old key did not sign is still rejected after a rotation", async () => {
    const { server } = await startWithToken();
    await server.stop();
    appendForged(server.home, new Uint8Array(32));
    const again = await startTestServer({ home: server.home });
    await mustRotate(again);
    await mustUnlock(again);
    mustRefuse(await get(again, forgedValue), 401, "UNAUTHORIZED");
  });

  for (const state of ["locked", "unlocked"] as const) {
    it(`a client token works after a kill at any step of the rotation of a vault that is ${state}`, async () => {
      let home = "";
      const copying = copyingFiles(() => home);
      const { server, token } = await startWithToken(copying.files);
      home = server.home;
      if (state === "locked") await mustLock(server);
      await copying.during(() => mustRotate(server));
      await server.stop();
      expect(copying.copies.length).to.be.above(2);
      const keys = copying.copies.map((copy) => Buffer.from(decodeKeys(copy, passphrase).masterKey).toString("hex"));
      expect(new Set(keys).size).to.equal(2);
      for (const [i, copy] of copying.copies.entries()) {
        const again = await startTestServer({ home: copy });
        await mustUnlock(again);
        expect((await get(again, token)).status, `copy ${i}`).to.equal(200);
        await again.stop();
      }
    });
  }

  it("a client token works whichever step of the rotation fails, and after a restart", async () => {
    const faults = failingFiles();
    const { server, token } = await startWithToken(faults.files);
    for (let [k, occurred] = [1, true]; occurred; k++) {
      await mustLock(server);
      faults.failOnce(k, "EIO");
      expect(formatOutcome(await send(server, rotating()))).to.be.oneOf(["200", "503 UNAVAILABLE"]);
      occurred = faults.repair();
      await mustUnlock(server);
      expect((await get(server, token)).status, `step ${k}`).to.equal(200);
      await untilRotated(server);
      expect((await get(server, token)).status, `step ${k}, at its end`).to.equal(200);
    }
    const again = await restarted(server);
    await mustUnlock(again);
    expect((await get(again, token)).status).to.equal(200);
  });
});
