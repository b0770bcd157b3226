/** docs/reference/http-api.md, Passphrase and keys: changes of the passphrase, further keys, and the upgrade of scrypt's cost. */
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { passphrase, restarted, shareTestServer, startTestServer, type TestServer } from "../../tools/rig/server.js";
import {
  mustGet,
  mustInit,
  mustLock,
  mustPut,
  mustRefuse,
  mustStatus,
  mustSucceed,
  mustUnlock,
  type Send,
  send,
} from "../../tools/rig/test-client.js";
import { headerFile } from "../support/damage.js";
import { failingFiles } from "../support/failing-files.js";
import {
  changing,
  creating,
  deleting,
  formatOutcome,
  mustCreateKey,
  mustListKeys,
  unlockWith,
} from "../support/key-requests.js";
import { FakeClock } from "../support/manual-clock.js";

const another = "another passphrase";
const aKey = "SRK-00000-00001-00002-00003-00004-00005-00006-00007-00008-00009-0000A-0000B-0000C";

async function startWithSecret(): Promise<TestServer> {
  const server = await startTestServer();
  await mustInit(server);
  await mustPut(server, "a", "kept");
  return server;
}

async function mustOpen(server: TestServer, text: string): Promise<void> {
  await mustLock(server);
  await mustUnlock(server, text);
  expect((await mustGet(server, "a"))["value"]).to.equal("kept");
}

describe("passphrase changes", () => {
  for (const state of ["unlocked", "locked"]) {
    it(`a passphrase change while ${state} replaces the old passphrase, and the vault stays ${state}`, async () => {
      const server = await startWithSecret();
      if (state === "locked") await mustLock(server);
      mustSucceed(await send(server, changing(passphrase, another)));
      expect((await mustStatus(server))["locked"]).to.equal(state === "locked");
      mustRefuse(await send(server, unlockWith(passphrase)), 401, "UNAUTHORIZED");
      await mustOpen(server, another);
      const again = await restarted(server);
      mustRefuse(await send(again, unlockWith(passphrase)), 401, "UNAUTHORIZED");
      await mustUnlock(again, another);
    });
  }

  it("a passphrase change with a wrong passphrase changes nothing and counts towards the lockout", async () => {
    const server = await startWithSecret();
    const before = readFileSync(headerFile(server), "utf8");
    for (let i = 0; i < 10; i++) {
      const wrong = [changing("wrong", another), creating("x", "wrong"), unlockWith("wrong")][i % 3] as Send;
      const answer = await send(server, wrong);
      mustRefuse(answer, 401, "UNAUTHORIZED");
      expect(answer.json["credential"]).to.equal("passphrase");
    }
    for (const right of [changing(passphrase, another), creating("x"), unlockWith(passphrase)])
      mustRefuse(await send(server, right), 429, "RATE_LIMITED");
    expect(readFileSync(headerFile(server), "utf8")).to.equal(before);
    expect((await mustGet(server, "a"))["value"]).to.equal("kept");
  });

  it("a passphrase change never lowers scrypt's cost", async () => {
    const server = await startTestServer({ scryptLogN: 12 });
    await mustInit(server);
    const cheap = await restarted(server, { scryptLogN: 10 });
    mustSucceed(await send(cheap, changing(passphrase, another)));
    expect(readFileSync(headerFile(cheap), "utf8")).to.contain('"logN":12');
  });
});

describe("keys", () => {
  const clock = new FakeClock();
  const server = shareTestServer({ clock }, async (fresh) => {
    await mustInit(fresh);
    await mustPut(fresh, "a", "kept");
  });

  it("a key unlocks the vault as the passphrase does, in any case and without its dashes", async () => {
    const { key } = await mustCreateKey(server(), "any case");
    expect(key).to.match(/^SRK(-[0-9A-HJKMNP-TV-Z]{5}){13}$/);
    for (const text of [key, key.toLowerCase(), key.replaceAll("-", "")]) await mustOpen(server(), text);
    await mustOpen(server(), passphrase);
  });

  it("lists a key with id, kind, label and time, never its text, also while the vault is locked", async () => {
    const { id, key } = await mustCreateKey(server(), "listed");
    await mustLock(server());
    const [first, ...others] = await mustListKeys(server());
    expect(first).to.include({ id: "passphrase", kind: "passphrase", label: "passphrase" });
    const createdAt = new Date(clock.now()).toISOString();
    expect(others.at(-1)).to.deep.equal({ id, kind: "key", label: "listed", createdAt });
    expect(JSON.stringify(others)).not.to.contain(key.slice(4, 9));
    expect(server().logged()).not.to.contain(key.slice(4, 15));
    await mustUnlock(server());
  });

  it("a key that is created while the vault is locked leaves it locked, and unlocks it after a restart", async () => {
    const own = await startWithSecret();
    await mustLock(own);
    const { key } = await mustCreateKey(own);
    expect((await mustStatus(own))["locked"]).to.equal(true);
    await mustOpen(await restarted(own), key);
  });

  it("a deleted key no longer unlocks the vault, while all others do", async () => {
    const [kept, gone] = [await mustCreateKey(server(), "kept"), await mustCreateKey(server(), "gone")];
    mustSucceed(await send(server(), deleting(gone.id)));
    mustRefuse(await send(server(), unlockWith(gone.key)), 401, "UNAUTHORIZED");
    mustRefuse(await send(server(), deleting(gone.id)), 404, "NOT_FOUND");
    await mustOpen(server(), kept.key);
    clock.advance(60_000);
  });

  it("a mistyped key gets 401 and counts towards the lockout, without a derivation", async () => {
    const { key } = await mustCreateKey(server(), "mistyped");
    const typo = key.slice(0, -1) + (key.endsWith("0") ? "1" : "0");
    for (const request of [unlockWith(typo), changing(typo, another), creating("x", typo)]) {
      const answer = await send(server(), request);
      mustRefuse(answer, 401, "UNAUTHORIZED");
      expect(answer.json["error"]).to.contain("mistyped");
    }
    for (let i = 0; i < 7; i++) mustRefuse(await send(server(), unlockWith(typo)), 401, "UNAUTHORIZED");
    mustRefuse(await send(server(), unlockWith(key)), 429, "RATE_LIMITED");
    clock.advance(300_000);
  });

  it("a well-formed key of another vault gets 401", async () => {
    mustRefuse(await send(server(), unlockWith(aKey)), 401, "UNAUTHORIZED");
  });

  const refusals: readonly (readonly [string, Send, string])[] = [
    ["a label that is taken", creating("kept"), "409 ALREADY_EXISTS"],
    ["the label of the passphrase", creating("passphrase"), "409 ALREADY_EXISTS"],
    ["an empty label", creating(""), "400 BAD_REQUEST"],
    ["a label of more than 64 bytes", creating("ü".repeat(33)), "400 BAD_REQUEST"],
    ["a label with a control character", creating("a\u0007b"), "400 BAD_REQUEST"],
    ["a label with a direction mark", creating("a\u202eb"), "400 BAD_REQUEST"],
    [
      "a label with a lone surrogate",
      { ...creating(""), body: `{"passphrase":"${passphrase}","label":"\\ud800"}` },
      "400 BAD_REQUEST",
    ],
    ["a label with white space around it", creating(" a"), "400 BAD_REQUEST"],
    ["no label", { ...creating(""), body: { passphrase } }, "400 BAD_REQUEST"],
    ["a passphrase that would be taken for a key's text", changing(passphrase, aKey), "400 BAD_REQUEST"],
    ["an empty new passphrase", changing(passphrase, ""), "400 BAD_REQUEST"],
    ["the deletion of a key that there is not", deleting("nothing"), "404 NOT_FOUND"],
  ];
  for (const [what, request, wanted] of refusals) {
    it(`refuses ${what}: ${wanted}`, async () => {
      expect(formatOutcome(await send(server(), request))).to.equal(wanted);
    });
  }

  it("a key replaces a forgotten passphrase", async () => {
    const own = await startWithSecret();
    const { key } = await mustCreateKey(own);
    mustSucceed(await send(own, changing(key, another)));
    await mustOpen(own, another);
    await mustOpen(own, key);
    mustRefuse(await send(own, unlockWith(passphrase)), 401, "UNAUTHORIZED");
  });

  it("a key that is the only way in cannot be deleted, and sets a new passphrase", async () => {
    const own = await startWithSecret();
    mustRefuse(await send(own, deleting("passphrase")), 400, "BAD_REQUEST");
    const { id, key } = await mustCreateKey(own);
    mustSucceed(await send(own, deleting("passphrase")));
    mustRefuse(await send(own, deleting(id)), 400, "BAD_REQUEST");
    mustRefuse(await send(own, unlockWith(passphrase)), 401, "UNAUTHORIZED");
    await mustOpen(own, key);
    mustSucceed(await send(own, changing(key, another)));
    await mustOpen(own, another);
    mustSucceed(await send(own, deleting(id)));
    expect(await mustListKeys(own)).to.have.lengthOf(1);
  });

  it("a vault takes at most 15 keys next to its passphrase", async () => {
    const own = await startTestServer();
    await mustInit(own);
    const keys = [];
    for (let n = 1; n <= 15; n++) keys.push(await mustCreateKey(own, `${n} ${"\\".repeat(60)}`));
    mustRefuse(await send(own, creating("one more")), 400, "BAD_REQUEST");
    const again = await restarted(own);
    for (const { key } of [...keys.slice(0, 1), ...keys.slice(-1)]) await mustUnlock(again, key);
  });
});

describe("key endpoints", () => {
  it("key endpoints return 400 before init, and 403 for a deletion", async () => {
    const server = await startTestServer();
    for (const request of [changing("a", "b"), creating("x"), { path: "/v1/keys" }])
      mustRefuse(await send(server, request), 400, "BAD_REQUEST");
    mustRefuse(await send(server, deleting("k7f3q9zx")), 403, "VAULT_LOCKED");
  });

  it("the deletion of a key is refused while the vault is locked", async () => {
    const server = await startWithSecret();
    const { id } = await mustCreateKey(server);
    await mustLock(server);
    mustRefuse(await send(server, deleting(id)), 403, "VAULT_LOCKED");
  });

  it("a passphrase in the form of a key unlocks a vault without keys, which takes no first key", async () => {
    const server = await startTestServer();
    await mustInit(server, { passphrase: aKey.replace("C", "D") });
    await mustLock(server);
    await mustUnlock(server, aKey.replace("C", "D"));
    mustRefuse(await send(server, creating("x", aKey.replace("C", "D"))), 400, "BAD_REQUEST");
  });
});

describe("scrypt's cost at an unlock", () => {
  async function cheapVault(): Promise<TestServer> {
    const server = await startWithSecret();
    await server.stop();
    return server;
  }

  it("an unlock with the passphrase raises a lower scrypt cost, and never lowers a higher one", async () => {
    const { home } = await cheapVault();
    const dear = await startTestServer({ home, scryptLogN: 12 });
    await mustUnlock(dear);
    expect(readFileSync(headerFile(dear), "utf8")).to.contain('"logN":12');
    await mustOpen(dear, passphrase);
    await dear.stop();
    const cheap = await startTestServer({ home, scryptLogN: 10 });
    await mustUnlock(cheap);
    expect(readFileSync(headerFile(cheap), "utf8")).to.contain('"logN":12');
  });

  it("an unlock succeeds when the header with the higher cost cannot be written, and the log says so", async () => {
    const { home } = await cheapVault();
    const { files, fail, repair } = failingFiles();
    const dear = await startTestServer({ home, scryptLogN: 12, files });
    fail("rename", "ENOSPC");
    await mustUnlock(dear);
    repair();
    expect(readFileSync(headerFile(dear), "utf8")).to.contain('"logN":10');
    expect(dear.logged()).to.contain("header-not-upgraded");
    await mustOpen(dear, passphrase);
    expect(readFileSync(headerFile(dear), "utf8")).to.contain('"logN":12');
  });

  it("an unlock with a key leaves the passphrase's cost as it is", async () => {
    const server = await startWithSecret();
    const { key } = await mustCreateKey(server);
    const dear = await restarted(server, { scryptLogN: 12 });
    await mustUnlock(dear, key);
    expect(readFileSync(headerFile(dear), "utf8")).to.contain('"logN":10');
  });
});
