/** Damaged headers never open: the start fails and says what to do, or the unlock fails. */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import type { KeyWorker } from "../../src/vault/key-worker.js";
import { passphrase, startTestServer, type TestServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustPut, mustRefuse, mustStatus, mustUnlock, send } from "../../tools/rig/test-client.js";
import { blobFile, damage, everyDamage, headerFile } from "../support/damage.js";
import { mustCreateKey } from "../support/key-requests.js";
import { startKeyWorker, unlockKeyWorker, verdict } from "../support/key-worker.js";
import { type FrozenHeader, headerOfVersion1 } from "../vectors/frozen-headers.js";

/** Each valid-looking header costs a derivation: the normal suite tries some, the long form all. */
const unlockEvery = process.env["STRONGROOM_SLOW"] ? 1 : 48;

/** A vault with one secret, its server stopped. */
async function stoppedVault(passphraseOfVault = passphrase): Promise<{ home: string; header: Buffer; key: string }> {
  const server = await startTestServer();
  await mustInit(server, { passphrase: passphraseOfVault });
  const { key } = await mustCreateKey(server, "recovery", passphraseOfVault);
  await mustPut(server, "a/b", "kept");
  await server.stop();
  return { home: server.home, header: readFileSync(headerFile(server)), key };
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

type Members = { [name: string]: unknown };

function edited(text: string, edit: (header: Members & { slots: Members[] }) => void): Buffer {
  const header = JSON.parse(text);
  edit(header);
  return Buffer.from(`${JSON.stringify(header)}\n`);
}

describe("damaged headers", function () {
  this.timeout(0);

  // Only the key worker judges a header, so each damage goes to its real thread; a server start for each would take
  // minutes and add nothing. What a start does with the verdict is tested below.
  type Row = readonly [what: string, header: () => Promise<FrozenHeader>, refusals: readonly string[]];
  const withKey = async () => {
    const { header, key } = await stoppedVault();
    return { text: header.toString("utf8"), keys: [key] };
  };
  const rows: readonly Row[] = [
    ["of version 1", async () => headerOfVersion1, ["UNAUTHORIZED"]],
    ["of version 2", withKey, ["UNAUTHORIZED", "INTEGRITY"]],
  ];
  for (const [what, written, refusals] of rows) {
    it(`a header ${what} with a flipped bit in any byte, truncated, or longer by a byte never unlocks`, async () => {
      const { text, keys } = await written();
      const header = Buffer.from(text);
      const worker = await startKeyWorker();
      const chooseOpeners = (n: number) => (n % unlockEvery === 0 ? [passphrase, ...keys] : keys.slice(0, 1));
      const understood = await neverOpens(worker, header, chooseOpeners, refusals);
      expect(understood, "damages that only a MAC can tell").to.be.above(100);
      expect(await mountVerdict(worker, header)).to.equal("mounted");
      expect(await verdicts(worker, [passphrase, ...keys])).to.deep.equal([passphrase, ...keys].map(() => "opens"));
    });
  }

  it("a header with its slots reordered, dropped, doubled or from another vault never unlocks", async () => {
    const [mine, other] = [await stoppedVault(), await stoppedVault()];
    const text = mine.header.toString("utf8");
    const foreign = JSON.parse(other.header.toString("utf8")) as { slots: Members[]; mac: string };
    const [theirPassphrase = {}, theirKey = {}] = foreign.slots;
    const edits: readonly (readonly [string, Buffer, "mounted" | "INTEGRITY"])[] = [
      ["in reverse order", edited(text, ({ slots }) => slots.reverse()), "INTEGRITY"],
      ["without the key", edited(text, ({ slots }) => slots.pop()), "mounted"],
      ["without the passphrase", edited(text, ({ slots }) => slots.shift()), "mounted"],
      ["without any slot", edited(text, ({ slots }) => slots.splice(0)), "INTEGRITY"],
      ["with the key twice", edited(text, ({ slots }) => slots.push({ ...slots[1] })), "INTEGRITY"],
      ["with the passphrase twice", edited(text, ({ slots }) => slots.splice(1, 0, { ...slots[0] })), "INTEGRITY"],
      [
        "with a key of another vault",
        edited(text, ({ slots }) => slots.push({ ...theirKey, id: "00000000", label: "x" })),
        "mounted",
      ],
      [
        "with another vault's key in place of its own",
        edited(text, ({ slots }) => slots.splice(1, 1, theirKey)),
        "mounted",
      ],
      [
        "with another vault's passphrase in place of its own",
        edited(text, ({ slots }) => slots.splice(0, 1, theirPassphrase)),
        "mounted",
      ],
      [
        "with the slots of another vault",
        edited(text, (header) => Object.assign(header, { slots: foreign.slots })),
        "mounted",
      ],
      [
        "with the slots and the MAC of another vault",
        edited(text, (header) => Object.assign(header, { slots: foreign.slots, mac: foreign.mac })),
        "mounted",
      ],
      ["with another label", edited(text, ({ slots }) => Object.assign(slots[1] ?? {}, { label: "mine" })), "mounted"],
      ["as one of version 1", edited(text, (header) => Object.assign(header, { version: 1 })), "INTEGRITY"],
    ];
    const worker = await startKeyWorker();
    for (const [what, bytes, wanted] of edits) {
      expect(await mountVerdict(worker, bytes), what).to.equal(wanted);
      if (wanted !== "mounted") continue;
      for (const verdict of await verdicts(worker, [passphrase, mine.key, other.key]))
        expect(verdict, what).to.be.oneOf(["UNAUTHORIZED", "INTEGRITY"]);
    }
  });

  it("an invalid header stops the start with a message that names the vault, and stays unchanged", async () => {
    const { home, header } = await stoppedVault();
    const text = header.toString("utf8");
    const damaged: readonly Uint8Array[] = [
      Buffer.alloc(0),
      header.subarray(0, -1),
      Buffer.concat([header, Buffer.from("\n")]),
      Buffer.from(text.replace('"version":2', '"version":3')),
      Buffer.from(text.replace('"version":2', '"version":1')),
      Buffer.from(text.replace(/"logN":\d+/, '"logN":21')),
      Buffer.from(text.replace(/("logN":\d+)/, "$1.0")),
      Buffer.from(text.replace('"r":8', '"r":16')),
      Buffer.from(text.replace('"p":1', '"p":2')),
      Buffer.from(text.replace("recovery", "\\u0072ecovery")),
      Buffer.from(text.replace("recovery", "r".repeat(65))),
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

  it("a header with a wrong check or MAC refuses the unlock, and stays unchanged", async () => {
    const { home, header } = await stoppedVault();
    const text = header.toString("utf8");
    const other = (member: string) =>
      text.replace(new RegExp(`("${member}":")(.)`), (_, m, c) => m + (c === "A" ? "B" : "A"));
    const damaged: readonly (readonly [string, number, string])[] = [
      ...["vaultId", "salt", "wrappedKey", "check"].map((member) => [other(member), 401, "UNAUTHORIZED"] as const),
      [text.replace(/"logN":\d+/, '"logN":15'), 401, "UNAUTHORIZED"],
      [text.replace(/("slots":\[\{[^}]*"createdAt":")\d/, "$11"), 401, "UNAUTHORIZED"],
      [headerOfVersion1.text.replace('"mac":"n', '"mac":"m'), 401, "UNAUTHORIZED"],
      [other("mac"), 500, "INTEGRITY"],
      [text.replace(/"createdAt":"\d/, '"createdAt":"1'), 500, "INTEGRITY"],
      [text.replace('"label":"recovery"', '"label":"recover"'), 500, "INTEGRITY"],
    ];
    for (const [changed, status, code] of damaged) {
      expect(changed).not.to.equal(text);
      const { server } = await startWith(home, Buffer.from(changed));
      if (server === null) throw new Error(`the start refused ${changed}`);
      mustRefuse(await unlock(server), status, code);
      expect((await mustStatus(server))["locked"]).to.equal(true);
      await server.stop();
      expect(readFileSync(headerFile({ home }), "utf8")).to.equal(changed);
    }
    await opensAgain(home, header);
  });

  it("the header of another vault opens no secret of this one, and both stay unchanged", async () => {
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

  it("a missing header or a pointer to no vault stops the start", async () => {
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

function mountVerdict(worker: KeyWorker, header: Uint8Array): Promise<string> {
  return verdict("mounted", worker.call({ op: "load", header: new Uint8Array(header) }));
}

/** Tries every damage that is mounted with some texts; returns how many. */
async function neverOpens(
  worker: KeyWorker,
  header: Uint8Array,
  chooseOpeners: (n: number) => readonly string[],
  refusals: readonly string[],
): Promise<number> {
  let understood = 0;
  for (const [fault, bytes] of everyDamage(header)) {
    if (!(await isMounted(worker, bytes, fault))) continue;
    for (const verdict of await verdicts(worker, chooseOpeners(understood++)))
      expect(verdict, fault).to.be.oneOf(refusals);
  }
  return understood;
}

/** The key worker mounts a damaged header or refuses it with INTEGRITY, and nothing else. */
async function isMounted(worker: KeyWorker, header: Uint8Array, fault: string): Promise<boolean> {
  const mounted = await mountVerdict(worker, header);
  expect(mounted, fault).to.be.oneOf(["INTEGRITY", "mounted"]);
  return mounted === "mounted";
}

async function verdicts(worker: KeyWorker, openers: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const opener of openers) found.push(await verdict("opens", unlockKeyWorker(worker, opener)));
  return found;
}

async function opensAgain(home: string, header: Uint8Array): Promise<void> {
  const { server } = await startWith(home, header);
  if (server === null) throw new Error("the server does not start on the repaired header");
  await mustUnlock(server);
  expect((await mustGet(server, "a/b"))["value"]).to.equal("kept");
  await server.stop();
}
