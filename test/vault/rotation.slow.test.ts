/** Rotation of the master key: secrets stay readable throughout, and in the end nothing of the old key is left. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { type FileOperations, OpenFile, systemFiles } from "../../src/files/durable.js";
import { Keys } from "../../src/maintenance/offline-keys.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { copyTree } from "../../tools/rig/copy-tree.js";
import { decodeHeader, headerText } from "../../tools/rig/decoder.js";
import {
  passphrase,
  realScryptCost,
  restarted,
  startTestServer,
  type TestOptions,
  type TestServer,
} from "../../tools/rig/server.js";
import {
  type Json,
  mustGet,
  mustInit,
  mustList,
  mustLock,
  mustPut,
  mustRefuse,
  mustStatus,
  mustSucceed,
  mustUnlock,
  type Send,
  send,
} from "../../tools/rig/test-client.js";
import { blobFile, damage, headerFile } from "../support/damage.js";
import { type FailingFiles, failingFiles } from "../support/failing-files.js";
import { heldFiles } from "../support/held-files.js";
import {
  changing,
  deleting,
  formatOutcome,
  mustCreateKey,
  mustListKeys,
  mustRotate,
  rotating,
  unlockWith,
  untilRotated,
} from "../support/key-requests.js";
import { FakeClock } from "../support/manual-clock.js";
import { Random, runSeed } from "../support/random.js";

const another = "another passphrase";
const paths = ["a", "b/c", "m", "n", "x/y/z", "z"];

async function fill(server: TestServer): Promise<void> {
  await mustInit(server);
  for (const path of paths) for (const n of [1, 2, 3]) await mustPut(server, path, `${path} ${n}`);
}

async function startFilled(options: TestOptions = {}): Promise<TestServer> {
  const server = await startTestServer(options);
  await fill(server);
  return server;
}

/** All that can be read of the vault: entries, values, versions and their tags. */
async function contents(server: TestServer, of: readonly string[] = paths): Promise<Json> {
  const all: { [path: string]: unknown } = { list: await mustList(server) };
  for (const path of of) {
    const versions = mustSucceed(await send(server, { path: `/v1/versions/${path}` }));
    const first = mustSucceed(await send(server, { path: `/v1/versions/${path}?version=1` }));
    all[path] = [await mustGet(server, path), versions, first];
  }
  return all;
}

/** The server reads and writes no file of this secret until it is released; the sweep waits there. */
function holdAt(server: TestServer, hold: ReturnType<typeof heldFiles>["hold"], path: string) {
  return hold(blobFile(server, path).slice(server.home.length));
}

async function isRotating(server: TestServer): Promise<boolean> {
  return (await mustStatus(server))["rotation"] !== undefined;
}

function sealedBytes(server: TestServer): Buffer[] {
  return paths.map((path) => readFileSync(blobFile(server, path)));
}

describe("rotations of the master key", () => {
  it("a rotation seals every version of every secret under a new key, with its tag, and drops the old key", async () => {
    const server = await startFilled();
    const [before, oldBytes] = [await contents(server), sealedBytes(server)];
    const { masterKey: old } = decodeHeader(headerText(server.home), passphrase);
    await mustRotate(server);
    await untilRotated(server);
    const { masterKey, oldKey } = decodeHeader(headerText(server.home), passphrase);
    expect(oldKey).to.equal(null);
    expect(Buffer.from(masterKey).equals(old)).to.equal(false);
    expect(await contents(server)).to.deep.equal(before);
    for (const [i, bytes] of sealedBytes(server).entries()) {
      expect(bytes.length).to.equal(oldBytes[i]?.length);
      expect(bytes.subarray(9, 21).equals(oldBytes[i]?.subarray(9, 21) ?? bytes)).to.equal(true); // the tag
      expect(bytes.subarray(21, 33).equals(oldBytes[i]?.subarray(21, 33) ?? bytes)).to.equal(false);
    }
    const again = await restarted(server);
    await mustUnlock(again);
    expect(await contents(again)).to.deep.equal(before);
    expect(again.logged()).not.to.contain("rotat");
  });

  it("an old header, put back after a rotation, opens no secret", async () => {
    const server = await startFilled();
    const old = readFileSync(headerFile(server));
    await mustRotate(server);
    await untilRotated(server);
    await server.stop();
    damage(headerFile(server), old);
    const again = await startTestServer({ home: server.home });
    await mustUnlock(again);
    for (const path of paths) mustRefuse(await send(again, { path: `/v1/secrets/${path}` }), 500, "INTEGRITY");
    expect(mustSucceed(await send(again, { path: "/v1/secrets" }))).to.deep.equal({ entries: [], damaged: paths });
  });

  it("a rotation keeps the keys whose texts are given, and names those that no longer unlock the vault", async () => {
    const server = await startFilled();
    const [kept, lost, gone] = [
      await mustCreateKey(server, "kept"),
      await mustCreateKey(server, "lost"),
      await mustCreateKey(server, "gone"),
    ];
    expect(await mustRotate(server, [kept.key, kept.key.toLowerCase()])).to.deep.equal(["lost", "gone"]);
    await untilRotated(server);
    for (const { key } of [lost, gone]) mustRefuse(await send(server, unlockWith(key)), 401, "UNAUTHORIZED");
    const left = (await mustListKeys(server)).map(({ id, label }) => [id, label]);
    expect(left).to.deep.equal([
      ["passphrase", "passphrase"],
      [kept.id, "kept"],
    ]);
    const again = await restarted(server);
    await mustUnlock(again, kept.key);
    expect((await mustGet(again, "a"))["value"]).to.equal("a 3");
  });

  it("a rotation of a locked vault leaves it locked, and continues once it is unlocked", async () => {
    const server = await startFilled();
    await mustLock(server);
    await mustRotate(server);
    expect(await mustStatus(server)).to.deep.include({ locked: true, rotation: { done: 0, total: paths.length } });
    await mustUnlock(server);
    await untilRotated(server);
    expect((await mustGet(server, "z"))["value"]).to.equal("z 3");
  });

  it("a rotation of a vault that has only a key is allowed by that key", async () => {
    const server = await startFilled();
    const { key } = await mustCreateKey(server);
    mustRefuse(await send(server, rotating([], key)), 400, "BAD_REQUEST");
    mustSucceed(await send(server, deleting("passphrase")));
    mustSucceed(await send(server, rotating([], key)));
    await untilRotated(server);
    await mustLock(server);
    await mustUnlock(server, key);
  });

  it("a rotation with a wrong passphrase, a mistyped or unknown key, or another body changes nothing", async () => {
    const server = await startFilled();
    const { key } = await mustCreateKey(server);
    const { id, key: gone } = await mustCreateKey(server, "gone");
    mustSucceed(await send(server, deleting(id)));
    const before = headerText(server.home);
    const body = (fields: object): Send => ({ method: "POST", path: "/v1/rotate", body: { passphrase, ...fields } });
    const rows: readonly (readonly [Send, string])[] = [
      [rotating([key], "wrong"), "401 UNAUTHORIZED"],
      [rotating([key, `${key.slice(0, -1)}${key.endsWith("0") ? 1 : 0}`]), "401 UNAUTHORIZED"],
      [rotating([key, gone]), "401 UNAUTHORIZED"],
      [rotating([key, "no key"]), "401 UNAUTHORIZED"],
      [body({}), "400 BAD_REQUEST"],
      [body({ keys: null }), "400 BAD_REQUEST"],
      [body({ keys: key }), "400 BAD_REQUEST"],
      [body({ keys: [1] }), "400 BAD_REQUEST"],
      [body({ keys: [[key]] }), "400 BAD_REQUEST"],
      [body({ keys: Array(16).fill(key) }), "400 BAD_REQUEST"],
    ];
    for (const [request, wanted] of rows) expect(formatOutcome(await send(server, request))).to.equal(wanted);
    expect(headerText(server.home)).to.equal(before);
    expect(await isRotating(server)).to.equal(false);
  });

  it("a rotation leaves damaged secrets as they are, and finishes", async () => {
    const server = await startFilled();
    damage(blobFile(server, "b/c"), Buffer.from("no blob"));
    const middle = readFileSync(blobFile(server, "n"));
    middle[60] = (middle[60] ?? 0) ^ 1;
    damage(blobFile(server, "n"), middle);
    await mustRotate(server);
    await untilRotated(server);
    expect(readFileSync(blobFile(server, "b/c"), "utf8")).to.equal("no blob");
    expect(server.logged()).to.contain("rotation-left-damaged-secrets");
    for (const path of ["a", "m", "x/y/z", "z"]) expect((await mustGet(server, path))["value"]).to.equal(`${path} 3`);
  });
});

/** From `flip` on, the last byte of one read of this file is wrong. */
function flippingFiles() {
  let due: string | null = null;
  const open: FileOperations["open"] = async (path, ...more) => {
    const handle = await systemFiles.open(path, ...more);
    if (due === null || !path.endsWith(due)) return handle;
    due = null;
    const read = async (bytes: Uint8Array, at: number) => {
      const length = await OpenFile.prototype.read.call(handle, bytes, at);
      if (length > 0) bytes[at + length - 1] = (bytes[at + length - 1] ?? 0) ^ 1;
      return length;
    };
    return Object.assign(handle, { read });
  };
  const flip = (end: string) => {
    due = end;
  };
  return { files: { ...systemFiles, open }, flip, isDue: () => due !== null };
}

describe("a rotation that reads a byte wrong once", () => {
  it("a rotation that reads a byte wrong once seals every version again, from another read", async () => {
    const { files, flip, isDue } = flippingFiles();
    const server = await startFilled({ files });
    const before = await contents(server);
    flip("/m.sealed");
    await mustRotate(server);
    await untilRotated(server);
    expect(isDue()).to.equal(false);
    expect(await contents(server)).to.deep.equal(before);
    expect(server.logged()).not.to.contain("rotation-left-damaged-secrets");
  });
});

describe("during a rotation", () => {
  async function startHeld(options: TestOptions = {}) {
    const { files, hold } = heldFiles();
    const server = await startFilled({ ...options, files });
    const { reached, release } = holdAt(server, hold, "m");
    await mustRotate(server);
    await reached; // a and b/c are sealed again, m and all others are not
    return { server, release };
  }

  it("every operation works on what is sealed again and on what is not", async () => {
    const { server, release } = await startHeld();
    expect((await mustStatus(server))["rotation"]).to.deep.equal({ done: 2, total: paths.length });
    for (const path of ["a", "n"]) {
      expect((await mustGet(server, path))["value"]).to.equal(`${path} 3`);
      const versions = mustSucceed(await send(server, { path: `/v1/versions/${path}` }))["versions"];
      expect(versions).to.have.lengthOf(3);
      const undo = { method: "POST", path: `/v1/versions/${path}`, body: { version: 1 } };
      expect(mustSucceed(await send(server, undo))).to.include({ version: 4 });
      expect(await mustPut(server, path, "new")).to.include({ version: 5 });
    }
    expect((await mustList(server)).map(({ path }) => path)).to.deep.equal(paths);
    const gets = { operations: ["a", "z", "x/y/z"].map((path) => ({ get: path })) }; // under the new key, and the old one
    const { results } = mustSucceed(await send(server, { method: "POST", path: "/v1/batch", body: gets }));
    expect((results as Json[]).map((secret) => secret["value"])).to.deep.equal(["new", "z 3", "x/y/z 3"]);
    mustSucceed(await send(server, { method: "DELETE", path: "/v1/versions/x/y/z" }));
    mustSucceed(await send(server, { method: "DELETE", path: "/v1/secrets/b/c" }));
    const operations = [
      { move: "z", to: "0/moved" },
      { copy: "n", to: "zz" },
      { put: "new", value: "v" },
      { get: "a" },
    ];
    mustSucceed(await send(server, { method: "POST", path: "/v1/batch", body: { operations } }));
    release();
    await untilRotated(server);
    const again = await restarted(server);
    await mustUnlock(again);
    const values = { a: "new", m: "m 3", n: "new", zz: "new", "x/y/z": "x/y/z 3", "0/moved": "z 3", new: "v" };
    expect((await mustList(again)).map(({ path }) => path)).to.deep.equal(Object.keys(values).sort());
    for (const [path, value] of Object.entries(values)) expect((await mustGet(again, path))["value"]).to.equal(value);
    for (const [path, n] of [
      ["n", 4],
      ["0/moved", 2],
      ["a", 4],
    ] as const) {
      const versions = mustSucceed(await send(again, { path: `/v1/versions/${path}` }));
      expect(versions, path)
        .to.have.property("versions")
        .with.lengthOf(n + 1);
      expect(versions).not.to.have.property("damaged");
    }
  });

  it("passphrase and keys can be changed, and a second rotation cannot begin", async () => {
    const server = await startFilled();
    await mustLock(server); // so that it does not continue
    await mustRotate(server);
    mustRefuse(await send(server, rotating()), 409, "ALREADY_EXISTS");
    const { id, key } = await mustCreateKey(server);
    mustSucceed(await send(server, changing(key, another)));
    await mustUnlock(server, another);
    mustSucceed(await send(server, deleting(id)));
    await untilRotated(server);
    mustSucceed(await send(server, rotating([], another)));
    await untilRotated(server);
    const again = await restarted(server);
    await mustUnlock(again, another);
    expect((await mustGet(again, "m"))["value"]).to.equal("m 3");
  });

  it("a rotation pauses at a lock, and continues after the next unlock", async () => {
    const { server, release } = await startHeld();
    const lock = mustLock(server);
    release();
    await lock;
    const { rotation } = await mustStatus(server);
    expect(rotation).to.have.property("done").that.is.oneOf([2, 3]);
    expect(decodeHeader(headerText(server.home), passphrase).oldKey).to.not.equal(null);
    await mustUnlock(server);
    await untilRotated(server);
    for (const path of paths) expect((await mustGet(server, path))["value"]).to.equal(`${path} 3`);
  });

  it("a forced init ends it, and a rotation of the new vault begins again", async () => {
    const { server, release } = await startHeld();
    const init = mustInit(server, { passphrase, force: true });
    release();
    await init;
    expect(await isRotating(server)).to.equal(false);
    for (const path of paths) await mustPut(server, path, "of the new vault");
    await mustRotate(server);
    await untilRotated(server);
    const again = await restarted(server);
    await mustUnlock(again);
    for (const path of paths) expect((await mustGet(again, path))["value"]).to.equal("of the new vault");
  });

  it("doctor opens every secret with its versions, whichever key it is under", async () => {
    const { server, release } = await startHeld(realScryptCost);
    const keys = new Keys(new Uint8Array(Buffer.from(passphrase)));
    await keys.unlock("gen-1", new Uint8Array(readFileSync(headerFile(server))));
    for (const path of paths) {
      const blob = new Uint8Array(readFileSync(blobFile(server, path)));
      expect(await keys.check(path, blob), path).to.include({ expiresAt: null });
    }
    await keys.stop();
    release();
    await untilRotated(server);
  });

  it("a snapshot opens with the header that is in it", async () => {
    const { server, release } = await startHeld();
    const snapshot = send(server, { method: "POST", path: "/v1/snapshot" });
    release();
    const { directory } = mustSucceed(await snapshot);
    await untilRotated(server);
    const home = join(temporaryDirectory(), "home");
    mkdirSync(join(home, "vault"), { recursive: true, mode: 0o700 });
    copyTree(String(directory), join(home, "vault", "gen-1"));
    writeFileSync(join(home, "vault", "current"), "gen-1\n", { mode: 0o600 });
    const copy = await startTestServer({ home });
    await mustUnlock(copy);
    for (const path of paths) expect((await mustGet(copy, path))["value"]).to.equal(`${path} 3`);
    await untilRotated(copy);
    expect(await contents(copy)).to.deep.equal(await contents(server));
  });
});

describe("rotations on a failing disk", function () {
  this.timeout(0);
  const few = ["a", "b/c"];

  async function startFailing(): Promise<{ server: TestServer; faults: FailingFiles; clock: FakeClock }> {
    const [faults, clock] = [failingFiles(), new FakeClock()];
    const server = await startTestServer({ files: faults.files, clock, idleTimeoutMs: 0 });
    await mustInit(server);
    for (const path of few) for (const n of [1, 2]) await mustPut(server, path, `${path} ${n}`);
    return { server, faults, clock };
  }

  it("a rotation that fails once, at any file operation, loses nothing and finishes", async () => {
    const { server, faults, clock } = await startFailing();
    const before = await contents(server, few);
    let occurred = true;
    for (let k = 1; occurred; k++) {
      faults.failOnce(k, k % 2 ? "EIO" : "SHORT");
      const outcome = formatOutcome(await send(server, rotating()));
      expect(outcome).to.be.oneOf(["200", "503 UNAVAILABLE"]);
      await untilRotated(server, () => clock.advance(60_000));
      occurred = faults.repair();
      expect(decodeHeader(headerText(server.home), passphrase).oldKey).to.equal(null);
      if (k % 5 === 0) expect(await contents(server, few)).to.deep.equal(before);
      expect(k, "steps of a rotation").to.be.below(80);
    }
    const again = await restarted(server);
    await mustUnlock(again);
    expect(await contents(again, few)).to.deep.equal(before);
    const left = readdirSync(join(again.home, "vault", "gen-1"));
    expect(left.sort()).to.deep.equal(["header.json", "secrets"]);
  });

  it("a rotation that fails from any file operation on, until a restart, loses nothing and finishes", async () => {
    const { server: first, faults, clock } = await startFailing();
    const before = await contents(first, few);
    let server = first;
    for (const k of [1, 6, 7, 9, 12, 16, 20]) {
      faults.failFrom(k, "EIO");
      await send(server, rotating());
      for (let i = 0; i < 20; i++) await mustStatus(server); // the sweep meets the fault
      faults.repair();
      server = await restarted(server, { files: faults.files, clock, idleTimeoutMs: 0 });
      await mustUnlock(server);
      await untilRotated(server, () => clock.advance(60_000));
      expect(await contents(server, few)).to.deep.equal(before);
    }
  });

  it("a disk that refuses to put the old header back locks the vault, which unlocks once the disk works again", async () => {
    const { server, faults, clock } = await startFailing();
    const before = await contents(server, few);
    const lockedAt: number[] = [];
    for (let k = 1; k <= 8; k++) {
      faults.failFrom(k, "EIO");
      mustRefuse(await send(server, rotating()), 503, "UNAVAILABLE");
      const { locked } = await mustStatus(server);
      if (locked === true) lockedAt.push(k);
      if (locked === true) mustRefuse(await send(server, unlockWith(passphrase)), 503, "UNAVAILABLE");
      faults.repair();
      await mustUnlock(server);
      await untilRotated(server, () => clock.advance(60_000));
    }
    expect(lockedAt, "steps from the rename on, whose effect cannot be seen").to.deep.equal([5, 6, 7, 8]);
    expect(await contents(server, few)).to.deep.equal(before);
  });
});

/** A client with paths of its own; what it has written is in `values`. */
class Writer {
  readonly values = new Map<string, string>();
  readonly #server: TestServer;
  readonly #root: string;
  readonly #random: Random;
  #steps = 0;

  constructor(server: TestServer, root: string, random: Random) {
    this.#server = server;
    this.#root = root;
    this.#random = random;
  }

  async step(): Promise<void> {
    const path = `${this.#root}/${this.#random.below(12)}`;
    const value = this.values.get(path);
    const kind = value === undefined ? "put" : this.#random.pick(["put", "delete", "move"] as const);
    this.#steps++;
    if (kind === "put") await this.#put(path);
    else if (kind === "delete") await this.#delete(path);
    else await this.#move(path, value ?? "");
    for (const [read, written] of [...this.values].slice(0, 2))
      expect((await mustGet(this.#server, read))["value"]).to.equal(written);
  }

  async #put(path: string): Promise<void> {
    const value = `${path} ${this.#steps}`;
    await mustPut(this.#server, path, value);
    this.values.set(path, value);
  }

  async #delete(path: string): Promise<void> {
    mustSucceed(await send(this.#server, { method: "DELETE", path: `/v1/secrets/${path}` }));
    this.values.delete(path);
  }

  async #move(path: string, value: string): Promise<void> {
    const to = `${this.#root}/moved-${this.#steps % 5}`;
    mustSucceed(
      await send(this.#server, { method: "POST", path: "/v1/batch", body: { operations: [{ move: path, to }] } }),
    );
    this.values.delete(path);
    this.values.set(to, value);
  }
}

describe("rotations under load", function () {
  this.timeout(0);

  it("a rotation while clients put, get, move and delete leaves what they wrote", async () => {
    const server = await startFilled();
    const random = new Random(runSeed);
    const writers = ["0", "k", "y"].map((root) => new Writer(server, root, new Random(random.below(2 ** 32))));
    let done = false;
    const clients = Promise.all(
      writers.map(async (writer) => {
        while (!done) await writer.step();
      }),
    );
    await mustRotate(server);
    await Promise.race([untilRotated(server), clients]);
    done = true;
    await clients;
    const again = await restarted(server);
    await mustUnlock(again);
    expect(await isRotating(again)).to.equal(false);
    const values = writers.flatMap((writer) => [...writer.values]);
    for (const [path, value] of values) expect((await mustGet(again, path))["value"]).to.equal(value);
    expect(await mustList(again)).to.have.lengthOf(values.length + paths.length);
  });
});
