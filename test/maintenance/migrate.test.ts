/** Migration between two stores: everything arrives as it is, an interruption is made good, and nothing else is replaced. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { migrate } from "../../src/maintenance/migrate.js";
import { FileStore } from "../../src/storage/files/file-store.js";
import type { SecretStore } from "../../src/storage/secret-store.js";
import { isUnfinished } from "../../src/storage/unfinished-vault.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { realScryptCost, startTestServer } from "../../tools/rig/server.js";
import { mustCreateToken, mustGet, mustInit, mustPut, mustUnlock, send } from "../../tools/rig/test-client.js";
import { bytes } from "../support/bytes.js";
import { run } from "../support/command-here.js";
import { type Kept, MemoryStore, nothingKept } from "../support/memory-store.js";
import { WeakDisk } from "../support/weak-disk.js";
import { headerOfVersion1, headerOfVersion2 } from "../vectors/frozen-headers.js";

/** 250 secrets, so that there are several batches, and a document. */
function filled(): Kept {
  const paths = Array.from({ length: 250 }, (_, i) => (i % 2 ? `app/${i}` : `ü${i}`));
  return {
    header: bytes(headerOfVersion1.text),
    blobs: new Map(paths.map((path) => [path, bytes(`sealed ${path}`)])),
    beside: new Map(["trash/app/1", "trash/gone", "keys/signing"].map((key) => [key, bytes(`sealed ${key}`)])),
    documents: new Map([["tokens", bytes("tokens")]]),
    generations: 1,
  };
}

type Moving = { readonly signal?: AbortSignal; readonly isUsable?: boolean; readonly served?: SecretStore };

function move(from: SecretStore, to: SecretStore, { signal, isUsable = true, served }: Moving = {}) {
  const watch = { tick: () => {}, signal: signal ?? new AbortController().signal };
  const refuseServed = async (store: SecretStore) => {
    if (store === served) throw new Error("served");
  };
  return migrate(from, to, { isUsable: async () => isUsable, refuseServed }, watch);
}

/** Returns the problem for which it was refused. */
async function findProblem(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => "none",
    (error: { problem?: string; code?: string }) => error.problem ?? error.code,
  );
}

describe("migrations", () => {
  it("a migration copies header, secrets and client tokens byte for byte, and its repetition changes nothing", async () => {
    const [source, target] = [filled(), nothingKept()];
    expect(await move(new MemoryStore(source), new MemoryStore(target))).to.deep.equal({ secrets: 250, copied: 253 });
    expect(target).to.deep.equal(filled());
    expect(source).to.deep.equal(filled());
    expect(await move(new MemoryStore(source), new MemoryStore(target))).to.deep.equal({ secrets: 250, copied: 0 });
    expect(target).to.deep.equal(filled());
  });

  it("a migration interrupted at any step leaves no usable vault, and its repetition continues", async () => {
    let steps = 1;
    for (let failing = 1; failing <= steps; failing++) {
      const target = nothingKept();
      let step = 0;
      const stop = () => {
        if (++step === failing) throw new Error("interrupted");
      };
      const problem = await findProblem(move(new MemoryStore(filled()), new MemoryStore(target, stop)));
      if (problem === "none") break;
      expect(problem).to.equal("UNAVAILABLE");
      expect(target.header === null || isUnfinished(target.header)).to.equal(true);
      await move(new MemoryStore(filled()), new MemoryStore(target));
      expect(target).to.deep.equal(filled());
      steps = failing + 1;
    }
    expect(steps).to.be.above(5);
  });

  it("a repeated migration syncs what a killed one left unsynced", async () => {
    const source = new MemoryStore({
      ...filled(),
      blobs: new Map([["app/a", bytes("sealed app/a")]]),
      beside: new Map(), // one change alone is made without a journal
    });
    const directory = temporaryDirectory();
    const disk = new WeakDisk();
    disk.failNextSync(join(directory, "gen-1", "secrets", "app"), "late");
    const killed = await FileStore.open(directory, disk.files);
    expect(await findProblem(move(source, killed))).to.equal("UNAVAILABLE");
    await killed.close();
    const target = await FileStore.open(directory, disk.files);
    await move(source, target);
    const restorePower = disk.cutPower();
    await target.close();
    rmSync(join(directory, "gen-1", "secrets", "app"), { recursive: true });
    restorePower();
    const again = await FileStore.open(directory);
    expect(await again.read("app/a")).to.deep.equal(bytes("sealed app/a"));
    await again.close();
  });

  it("a repeated migration copies the source as it is now, when that was used after the interruption", async () => {
    const [source, target] = [filled(), nothingKept()];
    let step = 0;
    const stop = () => {
      if (++step === 4) throw new Error("interrupted");
    };
    await findProblem(move(new MemoryStore(source), new MemoryStore(target, stop)));
    source.blobs.delete("app/1");
    source.blobs.set("app/3", bytes("newer"));
    source.documents.set("tokens", bytes("newer"));
    await move(new MemoryStore(source), new MemoryStore(target));
    expect(target).to.deep.equal(source);
  });

  it("a cancelled migration stops before the copy is a vault", async () => {
    const target = nothingKept();
    const signal = AbortSignal.abort();
    expect(await findProblem(move(new MemoryStore(filled()), new MemoryStore(target), { signal }))).to.equal("aborted");
    expect(isUnfinished(target.header ?? bytes(""))).to.equal(true);
  });

  const other = { ...filled(), header: bytes(headerOfVersion2.text) };
  const used = { ...filled(), blobs: new Map([["one", bytes("1")]]) };
  const refusals: readonly (readonly [rule: string, from: Kept, to: Kept, moving: Moving, problem: string])[] = [
    ["refuses a source without a vault", nothingKept(), nothingKept(), {}, "uninitialized"],
    ["refuses a source whose header is damaged", filled(), nothingKept(), { isUsable: false }, "damaged"],
    ["refuses a target with another vault", filled(), other, {}, "exists"],
    ["refuses a target that was used after its migration", filled(), used, {}, "exists"],
  ];
  for (const [rule, from, to, moving, problem] of refusals) {
    it(`a migration ${rule}, and changes nothing`, async () => {
      const before = structuredClone(to);
      expect(await findProblem(move(new MemoryStore(from), new MemoryStore(to), moving))).to.equal(problem);
      expect(to).to.deep.equal(before);
    });
  }

  it("a migration refuses to finish when a copy is not what was written", async () => {
    const target = nothingKept();
    let step = 0;
    const damage = () => {
      if (++step === 5) target.blobs.set("app/1", bytes("damaged"));
    };
    expect(await findProblem(move(new MemoryStore(filled()), new MemoryStore(target, damage)))).to.equal("changed");
    expect(isUnfinished(target.header ?? bytes(""))).to.equal(true);
  });

  it("a migration does not finish when a server of either store has started in between", async () => {
    for (const at of [0, 1]) {
      const stores = [new MemoryStore(filled()), new MemoryStore(nothingKept())] as const;
      const [from, to] = stores;
      const moving = move(from, to, { ...(stores[at] && { served: stores[at] }) });
      expect(await moving.catch((error: Error) => error.message)).to.equal("served");
      expect(isUnfinished(to.kept.header ?? bytes(""))).to.equal(true);
    }
  });

  it("strongroom migrate refuses a served home, then moves the vault whole", async () => {
    const server = await startTestServer(realScryptCost);
    await mustInit(server);
    for (const value of ["first", "second"]) await mustPut(server, "app/db/password", value);
    const { token } = await mustCreateToken(server, { name: "ci" });
    const home = join(temporaryDirectory(), "home");
    const args = ["migrate", "--from", server.home, "--to", home];
    expect((await run(args)).stderr).to.match(/another server \(pid \d+\) already serves/);
    await server.stop();
    const { code, stdout, stderr } = await run(args);
    expect([code, stderr]).to.deep.equal([0, ""]);
    expect(stdout).to.match(
      /^1 secret of .*, 1 copied now; all were compared\nnext: .*serve --home .*\nnext: .*never serve both/,
    );
    const moved = await startTestServer({ home });
    await mustUnlock(moved);
    expect((await mustGet(moved, "app/db/password"))["value"]).to.equal("second");
    const history = await send(moved, { path: "/v1/versions/app%2Fdb%2Fpassword?version=1", token });
    expect(history.json["value"]).to.equal("first");
  });
});
