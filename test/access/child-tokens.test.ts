/** Child tokens: rights, ends, and the records that hold them. */
import { hash } from "node:crypto";
import { expect } from "chai";
import { Credentials } from "../../src/access/credentials.js";
import { readTokens, tokenDocuments } from "../../src/access/stored-tokens.js";
import { readDocument, signedText, writeDocument } from "../../src/access/token-record.js";
import { newChildValue } from "../../src/access/token-value.js";
import { ClientTokens, type NewToken, type TokensOptions } from "../../src/access/tokens.js";
import { createLog } from "../../src/log.js";
import { Observers } from "../../src/observer.js";
import { Vault } from "../../src/vault/vault.js";
import { later } from "../../tools/rig/clean-up.js";
import { passphrase, testSettings } from "../../tools/rig/server.js";
import { FakeClock } from "../support/manual-clock.js";
import { type Kept, MemoryStore, nothingKept } from "../support/memory-store.js";
import { Random, runSeed } from "../support/random.js";

const rootText = `root-${"r".repeat(40)}`;
const hour = 3600;
const always = () => {};

type Limits = Pick<TokensOptions, "maxLiving">;
type Opened = { readonly vault: Vault; readonly tokens: ClientTokens; readonly credentials: Credentials };

/** `step`: called before each change of the store. */
type Wishes = Limits & { readonly step?: () => void };

async function opened(kept: Kept, clock: FakeClock, root = rootText, wishes: Wishes = {}): Promise<Opened> {
  const { step, ...limits } = wishes;
  const log = createLog("error", () => {}, Date.now);
  const settings = { ...testSettings(), minScryptLogN: 10, idleTimeoutMs: 0 };
  const store = new MemoryStore(kept, step);
  const vault = await Vault.open({ store, settings, clock, log, observers: new Observers(log), audit: null });
  later(() => vault.close());
  const credentials = new Credentials(root, clock);
  const tokens = await ClientTokens.open({ vault: vault.records, credentials, clock, log, ...limits });
  vault.setRecordStore(tokens);
  return { vault, tokens, credentials };
}

function body(members: object): Uint8Array<SharedArrayBuffer> {
  const text = Buffer.from(JSON.stringify(members));
  const bytes = new Uint8Array(new SharedArrayBuffer(text.length));
  bytes.set(text);
  return bytes;
}

type Server = Opened & { readonly kept: Kept; readonly clock: FakeClock };

async function unlocked(wishes: Wishes = {}): Promise<Server> {
  const [kept, clock] = [nothingKept(), new FakeClock()];
  const open = await opened(kept, clock, rootText, wishes);
  await open.vault.init(body({ passphrase }), always);
  return { ...open, kept, clock };
}

const wish = { label: "job", can: null, ttlSeconds: 2 * hour } as const;

function isValid({ credentials }: Opened, text: string): boolean {
  try {
    return credentials.authenticate(text) !== null;
  } catch {
    return false;
  }
}

async function family(tokens: ClientTokens) {
  const parent = await tokens.create({ name: "ci", can: ["get", "list"], paths: ["app/"], ttlSeconds: hour }, always);
  const child = await tokens.createChild(parent.text, wish);
  const grandchild = await tokens.createChild(child.text, { ...wish, can: ["get"] });
  return { parent: parent.text, child: child.text, grandchild: grandchild.text, shown: child.shown };
}

async function errorCode(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => (error as { code: string }).code,
  );
}

describe("child tokens", () => {
  it("a child token has its parent's rights and paths, and ends no later", async () => {
    const { tokens, clock } = await unlocked();
    const { shown } = await family(tokens);
    const expiresAt = new Date(clock.now() + hour * 1000).toISOString();
    expect(shown).to.deep.include({ parent: "ci", expiresAt, can: ["get", "list"], paths: ["app/"] });
    expect(shown.name).to.match(/^ci\.job-[0-9a-f]{8}$/);
    expect(tokens.list().map(({ parent }) => parent)).to.have.members([undefined, "ci", shown.name]);
  });

  it("a child token with a right that its parent does not have is refused", async () => {
    const { tokens } = await unlocked();
    const { child, grandchild } = await family(tokens);
    expect(await errorCode(tokens.createChild(child, { ...wish, can: ["put"] }))).to.equal("FORBIDDEN");
    expect(await errorCode(tokens.createChild(grandchild, { ...wish, can: ["list"] }))).to.equal("FORBIDDEN");
  });

  it("a ninth generation of child tokens is refused", async () => {
    const { tokens } = await unlocked();
    let text = rootText;
    for (let i = 0; i < 8; i++) text = (await tokens.createChild(text, wish)).text;
    expect(await errorCode(tokens.createChild(text, wish))).to.equal("BAD_REQUEST");
  });

  it("the limit of child tokens in one tree counts grandchildren, and releases those that have ended", async () => {
    const { tokens, clock } = await unlocked({ maxLiving: { ofTree: 3, inAll: 100 } });
    const other = await tokens.create({ name: "other", can: ["get"], paths: [""], ttlSeconds: hour }, always);
    const { parent, child, grandchild } = await family(tokens);
    const last = await tokens.createChild(grandchild, { ...wish, ttlSeconds: 60 });
    for (const text of [parent, child, grandchild, last.text]) {
      const refused = await tokens.createChild(text, wish).catch((error: unknown) => error);
      expect(refused).to.deep.include({ code: "RATE_LIMITED", retryAfter: 60 });
      expect((refused as Error).message).to.contain("the token ci has 3 child tokens");
    }
    expect(await errorCode(tokens.createChild(other.text, wish))).to.equal(null);
    for (const wanted of [null, null, null, "RATE_LIMITED"])
      expect(await errorCode(tokens.createChild(rootText, wish))).to.equal(wanted);
    clock.advance(60_000);
    const next = await tokens.createChild(grandchild, wish);
    await tokens.revoke(next.shown.name);
    expect(await errorCode(tokens.createChild(child, wish))).to.equal(null);
  });

  it("the limit of child tokens in all trees leaves room for the owner's tokens", async () => {
    const { tokens, clock } = await unlocked({ maxLiving: { ofTree: 3, inAll: 4 } });
    const { parent } = await family(tokens);
    for (const ttlSeconds of [60, hour]) await tokens.createChild(rootText, { ...wish, ttlSeconds });
    for (const text of [parent, rootText]) {
      const refused = await tokens.createChild(text, wish).catch((error: unknown) => error);
      expect(refused).to.deep.include({ code: "RATE_LIMITED", retryAfter: 60 });
      expect((refused as Error).message).to.contain("there are 4 child tokens");
    }
    await tokens.create({ name: "owner", can: ["get"], paths: [], ttlSeconds: 0 }, always);
    clock.advance(60_000);
    expect(await errorCode(tokens.createChild(parent, wish))).to.equal(null);
  });

  it("more than 20 child tokens a second in one tree are refused", async () => {
    const { tokens, clock } = await unlocked();
    const { child } = await family(tokens);
    for (let i = 2; i < 20; i++) await tokens.createChild(child, wish);
    const refused = await tokens.createChild(child, wish).catch((error: unknown) => error);
    expect(refused).to.deep.include({ code: "RATE_LIMITED", retryAfter: 1 });
    expect(await errorCode(tokens.createChild(rootText, wish))).to.equal(null);
    clock.advance(1000);
    expect(await errorCode(tokens.createChild(child, wish))).to.equal(null);
  });

  it("a child token inherits long paths without storing them, also after a restart", async () => {
    const open = await unlocked();
    const paths = Array.from({ length: 64 }, (_, i) => `app/${"p".repeat(900)}-${i}/`);
    const { text } = await open.tokens.create({ name: "ci", can: ["get"], paths, ttlSeconds: 0 }, always);
    const before = open.kept.documents.get("tokens")?.length ?? 0;
    const child = await open.tokens.createChild(text, wish);
    const grandchild = await open.tokens.createChild(child.text, wish);
    expect((open.kept.documents.get("tokens")?.length ?? 0) - before).to.be.below(1000);
    await open.vault.close();
    const again = await opened(open.kept, open.clock);
    await again.vault.unlock(body({ passphrase }), () => {});
    expect(isValid(again, grandchild.text)).to.equal(true);
    expect(again.tokens.list().map((shown) => shown.paths)).to.deep.equal([paths, paths, paths]);
  });

  it("the revocation of a parent revokes its descendants, also after a restart", async () => {
    const open = await unlocked();
    const { child, grandchild } = await family(open.tokens);
    await open.tokens.revoke("ci");
    expect([child, grandchild].filter((text) => isValid(open, text))).to.deep.equal([]);
    expect(open.tokens.list()).to.deep.equal([]);
    await open.vault.close();
    const again = await opened(open.kept, open.clock);
    expect([child, grandchild].filter((text) => isValid(again, text))).to.deep.equal([]);
  });

  it("the revocation of a child token keeps its parent valid", async () => {
    const open = await unlocked();
    const { parent, child, grandchild, shown } = await family(open.tokens);
    await open.tokens.revoke(shown.name);
    expect([parent, child, grandchild].map((text) => isValid(open, text))).to.deep.equal([true, false, false]);
  });

  it("child tokens survive a restart and a rotation of the master key", async () => {
    const open = await unlocked();
    const { child, grandchild } = await family(open.tokens);
    await open.vault.keys.rotate(body({ passphrase, keys: [] }), () => {});
    await open.vault.close();
    const again = await opened(open.kept, open.clock);
    await again.vault.unlock(body({ passphrase }), () => {});
    expect([child, grandchild].map((text) => isValid(again, text))).to.deep.equal([true, true]);
    expect(again.tokens.list()).to.have.length(3);
  });

  it("child tokens end with the value that they were made with", async () => {
    const open = await unlocked();
    const { child, grandchild } = await family(open.tokens);
    const renewed = await open.tokens.rotate("ci", 60, always);
    const late = await open.tokens.createChild(renewed.text, wish);
    expect([child, grandchild].map((text) => isValid(open, text))).to.deep.equal([true, true]);
    open.clock.advance(60_000);
    expect([child, grandchild, late.text].map((text) => isValid(open, text))).to.deep.equal([false, false, true]);
    expect(open.tokens.list().map(({ name }) => name)).to.have.members(["ci", late.shown.name]);
  });

  it("a child token ends with the root token that made it", async () => {
    const open = await unlocked();
    const { text } = await open.tokens.createChild(rootText, wish);
    open.credentials.replaceRoot(`next-${"n".repeat(40)}`, open.clock.now() + 60_000);
    expect(isValid(open, text)).to.equal(true);
    open.clock.advance(60_000);
    expect(isValid(open, text)).to.equal(false);
    await open.vault.close();
    const again = await opened(open.kept, open.clock, `next-${"n".repeat(40)}`);
    expect(isValid(again, text)).to.equal(false);
    expect(again.tokens.list()).to.deep.equal([]);
  });

  it("a rotation of a child token does not extend its life", async () => {
    const { tokens } = await unlocked();
    const { shown } = await family(tokens);
    expect((await tokens.rotate(shown.name, 0, always)).shown.expiresAt).to.equal(shown.expiresAt);
  });

  it("expired child tokens and sessions are deleted, and their values do not count as guesses", async () => {
    const { tokens, clock, kept, vault } = await unlocked();
    const { text } = await tokens.createChild(rootText, { ...wish, ttlSeconds: 60 });
    const session = { name: "agent-1", can: ["use"], paths: [], ttlSeconds: 60, session: true } as const;
    const other = await tokens.create(session, always);
    clock.advance(60_000);
    expect(tokens.list()).to.deep.equal([]);
    await tokens.create({ name: "ci", can: ["get"], paths: [], ttlSeconds: 0 }, always);
    const document = readDocument(kept.documents.get("tokens") ?? Buffer.from(""));
    expect(document).to.deep.include({ ended: [], lastUsed: new Map() });
    expect(document?.tokens.map(({ name }) => name)).to.deep.equal(["ci"]);
    await vault.close();
    const { credentials } = await opened(kept, clock);
    for (const value of [text, other.text])
      expect(() => credentials.authenticate(value)).to.throw("the token has expired");
    for (const guess of [`${text}x`, text.replace(/.$/, "!"), text.slice(0, 47), newChildValue(clock.now() + 1)])
      expect(credentials.authenticate(guess), guess).to.equal(null);
  });

  it("revoked child tokens do not displace the owner's revoked tokens from the document", async () => {
    const { tokens, clock, kept, vault } = await unlocked();
    const revoked = (at: number, name: string, child: object) => {
      return { digest: hash("sha256", `${name} ${at}`, "base64url"), name, reason: "revoked", at, ...child } as const;
    };
    const at = clock.now();
    const children = Array.from({ length: 12_000 }, (_, i) => revoked(at + i, "ci.job", { child: true }));
    const { text } = await tokens.createChild(rootText, wish);
    const stored = readDocument(kept.documents.get("tokens") ?? Buffer.from(""));
    if (stored === null) throw new Error("the document is not readable");
    kept.documents.set("tokens", writeDocument({ ...stored, ended: [revoked(at, "ci", {}), ...children] }));
    await vault.close();
    const again = await opened(kept, clock);
    await again.vault.unlock(body({ passphrase }), () => {});
    const caller = again.credentials.authenticate(text);
    if (caller === null || caller === "root") throw new Error("the child token is not valid");
    await again.tokens.revokeValue(caller, always);
    const { ended } = readDocument(kept.documents.get("tokens") ?? Buffer.from("")) ?? { ended: [] };
    expect(ended[0]).to.deep.equal(revoked(at, "ci", {}));
    expect(ended.length).to.equal(2001);
    expect(ended.at(-1)).to.deep.include({ name: caller.token.name, child: true });
  });

  it("a former value that revokes itself ends its own child tokens, not the newest value's", async () => {
    const open = await unlocked();
    const { parent, child, grandchild } = await family(open.tokens);
    const renewed = await open.tokens.rotate("ci", 60, always);
    const late = await open.tokens.createChild(renewed.text, wish);
    const caller = open.credentials.authenticate(parent);
    if (caller === null || caller === "root") throw new Error("the former value is not valid");
    const valid = (opened: Opened) =>
      [parent, child, grandchild, renewed.text, late.text].map((one) => isValid(opened, one));
    await open.tokens.revokeValue(caller, always);
    expect(valid(open)).to.deep.equal([false, false, false, true, true]);
    await open.vault.close();
    const again = await opened(open.kept, open.clock);
    await again.vault.unlock(body({ passphrase }), () => {});
    expect(valid(again)).to.deep.equal([false, false, false, true, true]);
    await again.tokens.rotate("ci", 60, always);
    expect(valid(again)).to.deep.equal([false, false, false, true, true]);
  });
});

describe("records of child tokens", () => {
  const digest = "d".repeat(43);
  const times = { createdAt: 1, ttlSeconds: 2, expiresAt: 3 };
  const record = { name: "ci", can: ["get"], paths: [], ...times, digest, former: [], mac: digest } as const;
  const child = { ...record, parent: { name: "root", digest } };

  it("the text under the MAC of a token without a parent does not change", () => {
    expect(signedText(record)).to.equal(`["strongroom token 1","ci",["get"],[],1,2,3,"${digest}",[]]`);
    expect(signedText(child)).to.equal(
      `["strongroom token 1","ci",["get"],[],1,2,3,"${digest}",[],["root","${digest}"]]`,
    );
  });

  it("records of child tokens survive a round trip, and those with a malformed parent are refused", () => {
    const written = (parent: unknown) => {
      const tokens = [{ ...record, parent }] as never;
      return readDocument(writeDocument({ tokens, ended: [], refused: [], lastUsed: new Map() }));
    };
    expect(written(child.parent)?.tokens).to.deep.equal([child]);
    for (const parent of [
      null,
      "root",
      {},
      { name: "root" },
      { name: "Root", digest },
      { name: "root", digest: "d" },
    ]) {
      expect(written(parent)?.refused, JSON.stringify(parent)).to.have.length(1);
    }
  });

  it("a record that inherits paths is refused without its parent's record", () => {
    const { paths: _, ...rest } = child;
    const inheriting = { ...rest, digest: "e".repeat(43), parent: { name: "ci", digest }, inherits: true } as const;
    const written = (tokens: readonly object[]) => {
      return readDocument(writeDocument({ tokens: tokens as never, ended: [], refused: [], lastUsed: new Map() }));
    };
    const parent = { ...record, paths: ["app/"] };
    expect(written([{ ...inheriting, name: "a" }, parent])?.tokens.map(({ paths }) => paths)).to.deep.equal([
      ["app/"],
      ["app/"],
    ]);
    for (const wrong of [inheriting, { ...inheriting, inherits: false }, rest, { ...child, inherits: true, extra: 1 }])
      expect(written([wrong]), JSON.stringify(wrong)).to.deep.include({ tokens: [] });
  });

  it("two records that name each other as parent are not valid", () => {
    const credentials = new Credentials(rootText, new FakeClock());
    const digests = ["a value", "another"].map((text) => hash("sha256", text, "base64url"));
    const circle = digests.map((own, i) => {
      const parent = { name: "ci", digest: digests[1 - i] ?? "" };
      const token = { ...record, digest: own, parent };
      return { digest: own, owner: { token, ranges: [] }, until: null, ending: "expired" as const };
    });
    credentials.changeClients([], circle);
    expect(() => credentials.authenticate("a value")).to.throw("revoked");
  });
});

/** A token with so many paths that the document is long. */
const manyPaths = {
  name: "many",
  can: ["get"],
  paths: Array.from({ length: 64 }, (_, i) => `app/${"p".repeat(900)}-${i}/`),
  ttlSeconds: 0,
} as const;

type Values = readonly Pick<NewToken, "text">[];

function expectState({ credentials }: Opened, living: Values, ended: Values): void {
  for (const { text } of living) expect(credentials.authenticate(text), `seed ${runSeed}`).to.be.an("object");
  for (const { text } of ended) expect(() => credentials.authenticate(text), `seed ${runSeed}`).to.throw("revoked");
}

async function expectAfterRestart(kept: Kept, clock: FakeClock, living: Values, ended: Values): Promise<void> {
  const again = await opened(cloneKept(kept), clock);
  expectState(again, living, ended);
  await again.vault.close();
}

function documentText({ documents }: Kept, name: string): string {
  return Buffer.from(documents.get(name) ?? "").toString();
}

function documentSizes({ documents }: Kept): readonly (number | undefined)[] {
  return tokenDocuments.map((name) => documents.get(name)?.length);
}

function cloneKept(kept: Kept): Kept {
  return { ...kept, documents: new Map(kept.documents) };
}

/** Another server on the same store, which shares vault and key worker with the first. */
async function beside({ vault, clock, kept }: Server): Promise<Server> {
  const { records } = vault;
  const readTag = async (name: string) => (await records.readDocument(name))?.tag ?? null;
  const shared = {
    isShared: true,
    refresh: () => records.refresh(),
    hold: <T>(work: () => Promise<T>) => records.hold(work),
    documentTags: (names: readonly string[]) => Promise.all(names.map(readTag)),
    readDocument: (name: string) => records.readDocument(name),
    writeDocument: async (name: string, bytes: Uint8Array<ArrayBuffer>, expected: string | null) => {
      for (let i = 0; i < (name === "tokens" ? 8 : 1); i++) await new Promise((resolve) => setImmediate(resolve)); // others are first
      return records.writeDocument(name, bytes, expected);
    },
    signRecords: (texts: readonly string[]) => records.signRecords(texts),
    verifyRecords: (...args: Parameters<typeof records.verifyRecords>) => records.verifyRecords(...args),
    resignRecords: (...args: Parameters<typeof records.resignRecords>) => records.resignRecords(...args),
  };
  const credentials = new Credentials(rootText, clock);
  const log = createLog("error", () => {}, Date.now);
  const tokens = await ClientTokens.open({ vault: shared, credentials, clock, log });
  await tokens.verify();
  return { vault, tokens, credentials, kept, clock };
}

type Made = { readonly living: NewToken[]; readonly ended: NewToken[] };

/** Makes children of a token, uses it, and revokes a third of them. */
async function use({ tokens, credentials, clock }: Server, parent: string, number: number, made: Made): Promise<void> {
  for (let i = 0; i < 30; i++) {
    const caller = credentials.authenticate(parent);
    if (caller !== null && caller !== "root") tokens.touch(caller);
    clock.advance(i % 8 === number ? 60_000 : 100); // last uses are written after a minute
    const child = await retried(() => tokens.createChild(parent, wish));
    const isRevoked = i % 3 === number;
    if (isRevoked) await retried(() => tokens.revoke(child.shown.name));
    (isRevoked ? made.ended : made.living).push(child);
  }
}

describe("a long document of client tokens", () => {
  it("new tokens append changes to a long document, which is rewritten from time to time", async () => {
    const { tokens, kept, clock } = await unlocked();
    const { text } = await tokens.create(manyPaths, always);
    const [before] = documentSizes(kept);
    const written = new Set<number | undefined>();
    for (let i = 0; i < 100; i++) {
      clock.advance(100);
      const child = await tokens.createChild(text, wish);
      const [whole, changes] = documentSizes(kept);
      written.add(whole);
      expect(changes, "of the changes").to.be.below(16_385);
      if (i % 2 === 1) await tokens.revoke(child.shown.name);
    }
    expect(written, "sizes of the document").to.include(before);
    expect(written.size).to.be.within(2, 8);
    await tokens.revoke("many");
    expect(tokens.list()).to.deep.equal([]);
  });

  it("a restart reads a long document with each of its changes", async () => {
    const { tokens, kept, clock, vault } = await unlocked();
    const parents = [(await tokens.create(manyPaths, always)).text, rootText] as const;
    const random = new Random(runSeed);
    const made: NewToken[] = [];
    const ended: NewToken[] = [];
    for (let i = 0; i < 150; i++) {
      clock.advance(100);
      made.push(await tokens.createChild(random.pick(parents), { ...wish, ttlSeconds: 600 }));
      const gone = made.splice(random.below(made.length), random.below(2));
      for (const { shown } of gone) await tokens.revoke(shown.name);
      ended.push(...gone);
      if (i % 10 === 0) await expectAfterRestart(kept, clock, made, ended);
    }
    await vault.close();
    await expectAfterRestart(kept, clock, made, ended);
  });

  it("several servers, killed between any two writes, lose no change of a long document", async () => {
    const [living, ended]: [NewToken[], NewToken[]] = [[], []];
    const moments: { readonly kept: Kept; readonly living: Values; readonly ended: Values }[] = [];
    let remember = () => {};
    const first = await unlocked({ step: () => remember() });
    const { text } = await first.tokens.create(manyPaths, always);
    const servers = [await beside(first), await beside(first), await beside(first)];
    remember = () => moments.push({ kept: cloneKept(first.kept), living: [...living], ended: [...ended] });
    await Promise.all(servers.map((server, i) => use(server, text, i, { living, ended })));
    for (const server of [...servers, await beside(first)]) {
      await server.tokens.refresh();
      expectState(server, living, ended);
      expect(server.tokens.list()).to.have.length(1 + living.length);
    }
    const closed = moments.filter(({ kept }) => documentText(kept, "token-changes").includes('"closed":true'));
    expect(closed).to.not.have.length(0);
    for (const moment of [...closed.slice(-4), ...moments.filter((_, i) => i % 60 === 0)]) {
      await expectAfterRestart(moment.kept, first.clock, moment.living, moment.ended);
    }
  });

  it("a rotation of the master key keeps the changes of a long document", async () => {
    const open = await unlocked();
    const { text } = await open.tokens.create(manyPaths, always);
    const [child, gone] = [await open.tokens.createChild(text, wish), await open.tokens.createChild(text, wish)];
    await open.tokens.revoke(gone.shown.name);
    await open.vault.keys.rotate(body({ passphrase, keys: [] }), () => {});
    const last = await open.tokens.createChild(text, wish);
    await open.vault.close();
    const again = await opened(open.kept, open.clock);
    await again.vault.unlock(body({ passphrase }), () => {});
    expect([text, child.text, last.text].map((one) => isValid(again, one))).to.deep.equal([true, true, true]);
    expect(() => again.credentials.authenticate(gone.text)).to.throw("revoked");
    expect(again.tokens.list()).to.have.length(3);
  });

  it("a long document has a version that earlier programs refuse, and accepts only its own changes", async () => {
    const { tokens, kept } = await unlocked();
    const { text } = await tokens.create(manyPaths, always);
    await tokens.createChild(text, wish);
    const [whole = Buffer.from(""), changes = Buffer.from("")] = tokenDocuments.map((name) => kept.documents.get(name));
    expect(documentText(kept, "tokens")).to.match(
      /^{"format":"strongroom tokens","version":2,"id":"[\w-]{22}","tokens":/,
    );
    expect(documentText(kept, "token-changes")).to.match(
      /^{"format":"strongroom token changes","version":1,"after":"[\w-]{22}",/,
    );
    expect(readTokens(whole, changes)?.tokens).to.have.length(2);
    const document = readDocument(whole);
    if (document === null) throw new Error("the document is not readable");
    for (const id of [null, "other"])
      expect(readTokens(writeDocument(document, id), changes)?.tokens).to.have.length(1);
    expect(readTokens(whole, Buffer.from("{"))).to.equal(null);
  });
});

/** Another server may change the tokens time and again. */
async function retried<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if ((error as { code: string }).code !== "UNAVAILABLE") throw error;
    }
  }
}
