/** Damaged headers never open: the start fails and says what to do, or the unlock fails. */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { systemClock } from "../../src/clock.js";
import { VaultError } from "../../src/errors.js";
import { KeyWorkerClient } from "../../src/vault/worker/key-worker-client.js";
import { later } from "../support/clean-up.js";
import { blobFile, damage, everyDamage, headerFile } from "../support/damage.js";
import { passphrase, startTestServer, type TestServer } from "../support/server.js";
import { mustGet, mustInit, mustPut, mustRefuse, mustStatus, mustUnlock, send } from "../support/test-client.js";

/** Each valid-looking header costs a derivation: the normal suite tries some, the long form all. */
const unlockEvery = process.env["STRONGROOM_SLOW"] ? 1 : 16;

/** A vault with one secret, its server stopped. */
async function stoppedVault(passphraseOfVault = passphrase): Promise<{ home: string; header: Buffer }> {
  const server = await startTestServer();
  await mustInit(server, { passphrase: passphraseOfVault });
  await mustPut(server, "a/b", "kept");
  await server.stop();
  return { home: server.home, header: readFileSync(headerFile(server)) };
}

/** Starts a server on this header; `said` is its error, or "serves". */
async function startWith(home: string, header: Uint8Array): Promise<{ said: string; server: TestServer | null }> {
  damage(headerFile({ home }), header);
  const server = await startTestServer({ home }).catch((error: Error) => error.message);
  return typeof server === "string" ? { said: server, server: null } : { said: "serves", server };
}

function unlock(server: TestServer) {
  return send(server, { method: "POST", path: "/v1/unlock", body: { passphrase } });
}

describe("a damaged header", function () {
  this.timeout(0);

  // Only the key worker judges a header, so each damage goes to its real thread; a server start for each would take
  // minutes and add nothing. What a start does with the verdict is tested below.
  it("with any one bit flipped, of any shorter length, or longer by a byte never opens", async () => {
    const { header } = await stoppedVault();
    let crashes = 0;
    const worker = KeyWorkerClient.start(
      { maxValueBytes: 1024, keepVersions: 0, keepVersionBytes: 0, minScryptLogN: 10 },
      systemClock,
      () => crashes++,
    );
    later(() => worker.stop());
    let understood = 0;
    for (const [what, bytes] of everyDamage(header)) {
      const mounted = await mountVerdict(worker, bytes);
      expect(mounted, what).to.be.oneOf(["INTEGRITY", "mounted"]);
      if (mounted !== "mounted" || understood++ % unlockEvery > 0) continue;
      expect(await unlockVerdict(worker), what).to.equal("UNAUTHORIZED");
    }
    expect(understood, "damages that only the MAC can tell").to.be.above(100);
    expect([await mountVerdict(worker, header), await unlockVerdict(worker)]).to.deep.equal(["mounted", "opens"]);
    expect(crashes).to.equal(0);
  });

  it("that is invalid stops the start with a message that names the vault, and is left unchanged", async () => {
    const { home, header } = await stoppedVault();
    const text = header.toString("utf8");
    const damaged: readonly Uint8Array[] = [
      Buffer.alloc(0),
      header.subarray(0, -1),
      Buffer.concat([header, Buffer.from("\n")]),
      Buffer.from(text.replace('"version":1', '"version":2')),
      Buffer.from(text.replace(/"logN":\d+/, '"logN":21')),
      Buffer.from(text.replace(/("logN":\d+)/, "$1.0")),
      Buffer.from(text.replace('"r":8', '"r":16')),
      Buffer.from(text.replace('"p":1', '"p":2')),
      Buffer.from(text.replace("strongroom", "Strongroom")),
      Buffer.alloc(1 << 20, "{"),
    ];
    for (const bytes of damaged) {
      expect(header.equals(bytes)).to.equal(false);
      const { said } = await startWith(home, bytes);
      expect(said)
        .to.contain(join(home, "vault"))
        .and.to.match(/header is damaged.*restore/);
      expect(readFileSync(headerFile({ home })).equals(bytes)).to.equal(true);
    }
    await opensAgain(home, header);
  });

  it("that is valid except for its MAC refuses the unlock, and is left unchanged", async () => {
    const { home, header } = await stoppedVault();
    const text = header.toString("utf8");
    const other = (member: string) =>
      text.replace(new RegExp(`("${member}":")(.)`), (_, m, c) => m + (c === "A" ? "B" : "A"));
    const damaged = [
      ...["vaultId", "salt", "wrappedKey", "mac"].map(other),
      text.replace(/"logN":\d+/, '"logN":15'),
      text.replace(/"createdAt":"\d/, '"createdAt":"1'),
    ];
    for (const changed of damaged) {
      expect(changed).not.to.equal(text);
      const { server } = await startWith(home, Buffer.from(changed));
      if (server === null) throw new Error(`the start refused ${changed}`);
      mustRefuse(await unlock(server), 401, "UNAUTHORIZED");
      expect((await mustStatus(server))["locked"]).to.equal(true);
      await server.stop();
      expect(readFileSync(headerFile({ home }), "utf8")).to.equal(changed);
    }
    await opensAgain(home, header);
  });

  it("of another vault opens no secret of this one, and all are left unchanged", async () => {
    const { home, header } = await stoppedVault();
    const { server } = await startWith(home, (await stoppedVault()).header);
    if (server === null) throw new Error("a whole header is understood");
    const blob = readFileSync(blobFile(server, "a/b"));
    await mustUnlock(server);
    for (const method of ["GET", "PUT"]) {
      const answer = await send(server, { method, path: "/v1/secrets/a/b", body: { value: "overwritten" } });
      mustRefuse(answer, 500, "INTEGRITY");
    }
    await server.stop();
    expect(readFileSync(blobFile({ home }, "a/b")).equals(blob)).to.equal(true);
    const { server: foreign } = await startWith(home, (await stoppedVault("another")).header);
    if (foreign === null) throw new Error("a whole header is understood");
    mustRefuse(await unlock(foreign), 401, "UNAUTHORIZED");
    await foreign.stop();
    await opensAgain(home, header);
  });

  it("that is missing stops the start, and so does a pointer to no vault", async () => {
    const { home, header } = await stoppedVault();
    const file = headerFile({ home });
    rmSync(file);
    expect(await startMessage(home)).to.contain(`${file} is missing: restore it`);
    const current = join(home, "vault", "current");
    for (const name of ["gen-7\n", "../elsewhere\n", "gen-1", "", "gen-01\n"]) {
      damage(current, Buffer.from(name));
      expect(await startMessage(home), name)
        .to.contain(join(home, "vault"))
        .and.to.contain("start again");
      expect(readFileSync(current, "utf8")).to.equal(name);
    }
    damage(current, Buffer.from("gen-1\n"));
    await opensAgain(home, header);
  });
});

async function startMessage(home: string): Promise<string> {
  return startTestServer({ home }).then(
    () => "serves",
    (error: Error) => error.message,
  );
}

function mountVerdict(worker: KeyWorkerClient, header: Uint8Array): Promise<string> {
  return verdict("mounted", worker.call({ op: "mount", header: new Uint8Array(header) }));
}

function unlockVerdict(worker: KeyWorkerClient): Promise<string> {
  const text = new TextEncoder().encode(JSON.stringify({ passphrase }));
  const body = new Uint8Array(new SharedArrayBuffer(text.length));
  body.set(text);
  return verdict("opens", worker.call({ op: "unlock", body }));
}

/** Returns the code of the key worker's refusal, or `success`. */
async function verdict(success: string, call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return success;
  } catch (error) {
    if (error instanceof VaultError) return error.code;
    throw error;
  }
}

async function opensAgain(home: string, header: Uint8Array): Promise<void> {
  const { server } = await startWith(home, header);
  if (server === null) throw new Error("the server does not start on the repaired header");
  await mustUnlock(server);
  expect((await mustGet(server, "a/b"))["value"]).to.equal("kept");
  await server.stop();
}
