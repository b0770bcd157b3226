/** The keyring as clients see it: items, collections, sessions, locks, what the vault has of them, and hostile peers. */
import { once } from "node:events";
import { statSync } from "node:fs";
import { connect } from "node:net";
import { dirname } from "node:path";
import { expect } from "chai";
import { type Value, Variant, writeMessage } from "../../../src/cli/kit/dbus/wire.js";
import { later } from "../../../tools/rig/clean-up.js";
import { shareLocalServer } from "../../../tools/rig/server.js";
import {
  mustGet,
  mustInit,
  mustListPaths,
  mustLock,
  mustPut,
  mustSucceed,
  mustUnlock,
  secretTarget,
  send,
} from "../../../tools/rig/test-client.js";
import { runHere } from "../../support/command-here.js";
import { BusClient, CallError, loginPath, root, startKeyring, TestSession } from "./bus-client.js";

const service = "org.freedesktop.Secret.Service";
const collection = "org.freedesktop.Secret.Collection";
const item = "org.freedesktop.Secret.Item";

async function mustFail(work: Promise<unknown>, name: string): Promise<void> {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error, String(error)).to.be.instanceOf(CallError);
  expect((error as CallError).message).to.match(new RegExp(`${name}$`));
}

describe("the keyring", () => {
  const server = shareLocalServer({}, mustInit);
  let socket = "";
  before(async () => {
    ({ socket } = await startKeyring(server()));
  });
  const client = () => BusClient.to(socket);
  let names = 0;
  const fresh = () => ({ service: `s${++names}`, "user name": "é" });
  const vaultPath = (path: string) => path.replace(`${root}/collection/`, "keyring/");

  for (const kind of ["plain", "encrypted"] as const) {
    it(`the ${kind} session stores an item in the vault and returns it byte for byte`, async () => {
      const session = await TestSession.open(await client(), kind);
      for (const value of [
        Buffer.from("pässword"),
        Buffer.of(),
        Buffer.from("16 bytes exactly"),
        Buffer.of(255, 0, 1),
      ]) {
        const attributes = fresh();
        const path = await session.create(attributes, value);
        expect((await session.get(path)).equals(value)).to.equal(true);
        expect(await session.search(attributes)).to.deep.equal([[path], []]);
        const stored = await mustGet(server(), vaultPath(path));
        expect(stored["metadata"]).to.deep.equal({
          custom: { label: "a label", "attr:service": attributes.service, "attr:user name": "é" },
        });
      }
    });
  }

  it("a new item replaces the one with equal attributes, whose value becomes an earlier version", async () => {
    const session = await TestSession.open(await client(), "plain");
    const attributes = fresh();
    const path = await session.create(attributes, Buffer.from("one"));
    expect(await session.create(attributes, Buffer.from("two"))).to.equal(path);
    expect(await mustGet(server(), vaultPath(path))).to.include({ value: "two", version: 2 });
    const other = await session.create(attributes, Buffer.from("three"), false);
    expect(other).not.to.equal(path);
    expect((await session.search(attributes))[0]).to.have.members([path, other]);
  });

  it("two keyrings that create items of equal attributes make one", async () => {
    const another = await startKeyring(server());
    const sessions = [
      await TestSession.open(await client(), "plain"),
      await TestSession.open(await BusClient.to(another.socket), "encrypted"),
    ];
    for (let n = 0; n < 5; n++) {
      const attributes = fresh();
      const paths = await Promise.all(
        Array.from({ length: 6 }, (_, i) => sessions[i % 2]?.create(attributes, Buffer.from(`value ${i}`))),
      );
      expect(new Set(paths).size, paths.join()).to.equal(1);
      for (const session of sessions) expect((await session.search(attributes))[0]).to.deep.equal([paths[0]]);
    }
  });

  it("a secret of another program is an item with its path as label, which follows its changes", async () => {
    const session = await TestSession.open(await client(), "plain");
    await mustPut(server(), "keyring/login/by hand/ä", "typed");
    const path = `${loginPath}/by_20hand_2f_c3_a4`;
    expect((await session.get(path)).toString()).to.equal("typed");
    expect(await session.client.property(path, "Item", "Label")).to.equal("keyring/login/by hand/ä");
    await mustPut(server(), "keyring/login/by hand/ä", "changed");
    expect((await session.get(path)).toString()).to.equal("changed");
    mustSucceed(await send(server(), { method: "DELETE", path: secretTarget("keyring/login/by hand/ä") }));
    await mustFail(session.get(path), "NoSuchObject");
  });

  it("changes of an item are signalled, and its deletion moves it to the trash", async () => {
    const session = await TestSession.open(await client(), "encrypted");
    const rule = "type='signal',sender='org.freedesktop.secrets',path_namespace='/org/freedesktop/secrets'";
    await session.client.call("/org/freedesktop/DBus", "org.freedesktop.DBus.AddMatch", "s", [rule]);
    const path = await session.create(fresh(), Buffer.from("one"));
    const set = (name: string, value: Variant) =>
      session.client.call(path, "org.freedesktop.DBus.Properties.Set", "ssv", [item, name, value]);
    await set("Label", new Variant("s", "other"));
    await set("Attributes", new Variant("a{ss}", [["a", "b"]]));
    await session.client.call(path, `${item}.SetSecret`, "(oayays)", [session.secret(Buffer.from("two"))]);
    expect((await session.get(path)).toString()).to.equal("two");
    expect(await session.client.property(path, "Item", "Attributes")).to.deep.equal([["a", "b"]]);
    expect(await mustGet(server(), vaultPath(path))).to.have.deep.property("metadata", {
      custom: { label: "other", "attr:a": "b" },
    });
    await session.client.call(path, `${item}.Delete`, "", []);
    await mustFail(session.get(path), "NoSuchObject");
    const { entries } = mustSucceed(await send(server(), { path: "/v1/trash" }));
    expect((entries as readonly { path: string }[]).map((entry) => entry.path)).to.include(vaultPath(path));
    const told = session.client.signals.filter(({ body }) => body[0] === path).map(({ member }) => member);
    expect(told).to.deep.equal(["ItemCreated", "ItemChanged", "ItemChanged", "ItemChanged", "ItemDeleted"]);
  });

  it("the login collection exists from the first use, and others are created, labelled and deleted", async () => {
    const session = await TestSession.open(await client(), "plain");
    const alias = (name: string) => session.client.call(root, `${service}.ReadAlias`, "s", [name]);
    expect(await alias("default")).to.deep.equal([loginPath]);
    expect(await alias("nothing")).to.deep.equal(["/"]);
    const label: Value = [[`${collection}.Label`, new Variant("s", "My work")]];
    const [path] = await session.client.call(root, `${service}.CreateCollection`, "a{sv}s", [label, "work"]);
    expect(path).to.equal(`${root}/collection/my_2dwork`);
    expect(await alias("work")).to.deep.equal([path]);
    expect(await session.client.property(String(path), "Collection", "Label")).to.equal("My work");
    expect(await session.client.property(root, "Service", "Collections")).to.include.members([path, loginPath]);
    const made = await session.create(fresh(), Buffer.from("v"), true, `${root}/aliases/work`);
    expect(made).to.match(new RegExp(`^${path}/`));
    expect(await session.client.property(String(path), "Collection", "Items")).to.deep.equal([made]);
    expect(await session.client.call(String(path), `${collection}.Delete`, "", [])).to.deep.equal(["/"]);
    expect(await mustListPaths(server(), "keyring/my-work/")).to.deep.equal([]);
    await mustFail(session.client.property(String(path), "Collection", "Label"), "NoSuchObject");
    await mustFail(session.client.call(loginPath, `${collection}.Delete`, "", []), "NotSupported");
  });

  it("the session's collection stays in memory", async () => {
    const session = await TestSession.open(await client(), "plain");
    const before = await mustListPaths(server(), "");
    const attributes = fresh();
    const path = await session.create(attributes, Buffer.from("v"), true, `${root}/aliases/session`);
    expect((await session.get(path)).toString()).to.equal("v");
    expect((await session.search(attributes))[0]).to.deep.equal([path]);
    await session.client.call(path, `${item}.Delete`, "", []);
    expect((await session.search(attributes))[0]).to.deep.equal([]);
    expect(await mustListPaths(server(), "")).to.deep.equal(before);
  });

  it("items of a locked collection are listed as locked, and unlocked without a prompt", async () => {
    const session = await TestSession.open(await client(), "plain");
    const attributes = fresh();
    const path = await session.create(attributes, Buffer.from("v"));
    expect(await session.client.call(root, `${service}.Lock`, "ao", [[loginPath]])).to.deep.equal([[loginPath], "/"]);
    expect(await session.search(attributes)).to.deep.equal([[], [path]]);
    await mustFail(session.get(path), "IsLocked");
    await mustFail(session.create(attributes, Buffer.from("w")), "IsLocked");
    await mustFail(session.client.call(path, `${item}.Delete`, "", []), "IsLocked");
    expect(await session.client.property(path, "Item", "Locked")).to.equal(true);
    expect(await session.client.call(root, `${service}.Unlock`, "ao", [[path]])).to.deep.equal([[path], "/"]);
    expect((await session.get(path)).toString()).to.equal("v");
  });

  it("a search, a read and a store wait while the vault is locked, and a prompt completes at the unlock", async () => {
    const session = await TestSession.open(await client(), "encrypted");
    const attributes = fresh();
    const path = await session.create(attributes, Buffer.from("v"));
    await mustLock(server());
    expect(await session.client.property(loginPath, "Collection", "Locked")).to.equal(true);
    const [unlocked, prompt] = await session.client.call(root, `${service}.Unlock`, "ao", [[loginPath]]);
    expect(unlocked).to.deep.equal([]);
    await session.client.call(String(prompt), "org.freedesktop.Secret.Prompt.Prompt", "s", [""]);
    const waiting = Promise.all([
      session.search(attributes),
      session.get(path),
      session.create(attributes, Buffer.from("w")),
    ]);
    await mustFail(session.client.property(root, "Service", "Collections"), "IsLocked"); // before those that wait
    await mustUnlock(server());
    const [found, read] = await waiting;
    expect(found).to.deep.equal([[path], []]);
    expect(["v", "w"]).to.include(read.toString());
    while (session.client.signals.every(({ member }) => member !== "Completed")) await session.search(attributes);
    const completed = session.client.signals.find(({ member }) => member === "Completed");
    expect(completed?.body).to.deep.equal([false, new Variant("ao", [loginPath])]);
  });

  it("a prompt is dismissed by its client, and not usable by another", async () => {
    const [one, other] = [await client(), await client()];
    await mustLock(server());
    const [, prompt] = await one.call(root, `${service}.Unlock`, "ao", [[loginPath]]);
    await mustFail(other.call(String(prompt), "org.freedesktop.Secret.Prompt.Prompt", "s", [""]), "NoSuchObject");
    await one.call(String(prompt), "org.freedesktop.Secret.Prompt.Dismiss", "", []);
    while (one.signals.every(({ member }) => member !== "Completed"))
      await one.property(loginPath, "Collection", "Locked");
    expect(one.signals.find(({ member }) => member === "Completed")?.body[0]).to.equal(true);
    await mustUnlock(server());
  });

  it("unknown algorithms, foreign sessions, changed ciphertext and outside paths are refused", async () => {
    const [one, other] = [await client(), await client()];
    const open = (algorithm: string) =>
      one.call(root, `${service}.OpenSession`, "sv", [algorithm, new Variant("ay", Buffer.of(1))]);
    await mustFail(open("dh-ietf1024-sha1"), "NotSupported");
    await mustFail(open("dh-ietf1024-sha256-aes128-cbc-pkcs7"), "InvalidArgs");
    const session = await TestSession.open(one, "encrypted");
    const path = await session.create(fresh(), Buffer.from("v"));
    await mustFail(other.call(path, `${item}.GetSecret`, "o", [session.path]), "NoSession");
    const broken: Value = [session.path, Buffer.alloc(16), Buffer.alloc(16), ""];
    await mustFail(one.call(path, `${item}.SetSecret`, "(oayays)", [broken]), "InvalidArgs");
    await mustPut(server(), "app/outside", "v");
    for (const outside of [`${root}/collection/_2e_2e/app`, `${root}/collection/x/y`, "/app/outside"])
      await mustFail(one.call(outside, `${item}.GetSecret`, "o", [session.path]), "NoSuchObject");
    const signature = one.call(root, `${service}.SearchItems`, "as", [["a"]]);
    await mustFail(signature, "InvalidArgs");
    await mustFail(one.call(root, `${service}.Nothing`, "", []), "UnknownMethod");
  });

  it("the socket and its directory belong to the owner, and the token covers only its prefix", async () => {
    expect(statSync(socket).mode & 0o777).to.equal(0o600);
    expect(statSync(dirname(socket)).mode & 0o077).to.equal(0);
    const { tokens } = mustSucceed(await send(server(), { path: "/v1/tokens" }));
    for (const token of tokens as readonly object[])
      expect(token).to.deep.include({ can: ["list", "get", "put", "delete"], paths: ["keyring/"] });
  });
});

describe("index of the keyring", () => {
  const server = shareLocalServer({ audit: "all" }, mustInit);
  const records = async () => {
    const found = mustSucceed(await send(server(), { path: "/v1/audit?limit=1000" }))["records"];
    return found as readonly { readonly event: string; readonly token?: string }[];
  };
  /** Returns how often keyrings have listed their items. */
  const lists = async () =>
    (await records()).filter(({ event, token = "" }) => event === "list" && token.startsWith("keyring-")).length;
  const nothing = [[], []];
  const missing = { service: "unknown" };
  const storeAs = (attribute: string) => ({ value: "v", custom: { "attr:service": attribute } });

  const opened = (client: BusClient) => TestSession.open(client, "plain");

  /** Starts a keyring, which has just found that there is no such item; returns its socket, and that session. */
  async function missed() {
    const { socket } = await startKeyring(server());
    const session = await opened(await BusClient.to(socket));
    await session.create({ service: "known" }, Buffer.from("v"));
    expect(await session.search(missing)).to.deep.equal(nothing);
    return { session, socket };
  }

  it("searches without a result, reads and own changes do not reload the index", async () => {
    const { session } = await missed();
    const before = await lists();
    for (let n = 0; n < 3; n++) expect(await session.search(missing)).to.deep.equal(nothing);
    const path = await session.create({ service: "new" }, Buffer.from("v"));
    expect(await session.search(missing)).to.deep.equal(nothing);
    await session.get(path);
    expect(await session.search(missing)).to.deep.equal(nothing);
    await session.client.call(path, `${item}.Delete`, "", []);
    expect(await session.search({ service: "new" })).to.deep.equal(nothing);
    expect(await lists()).to.equal(before);
  });

  it("a search finds what another program stores, and attributes that it changes", async () => {
    const { session } = await missed();
    const path = `${loginPath}/other`;
    for (const attribute of ["stored", "changed"]) {
      expect(await session.search({ service: attribute })).to.deep.equal(nothing);
      await mustPut(server(), "keyring/login/other", storeAs(attribute));
      expect(await session.search({ service: attribute })).to.deep.equal([[path], []]);
    }
    expect((await session.get(path)).toString()).to.equal("v");
    await mustPut(server(), "keyring/login/another", storeAs("after a read"));
    expect((await session.search({ service: "after a read" }))[0]).to.have.length(1);
  });

  it("several clients do not reload the index, until another program stores something", async () => {
    const { socket } = await missed();
    const sessions = await Promise.all(Array.from({ length: 3 }, async () => opened(await BusClient.to(socket))));
    const before = await lists();
    const work = async (session: TestSession, n: number) => {
      const path = await session.create({ service: `client ${n}` }, Buffer.from("v"));
      expect(await session.search(missing)).to.deep.equal(nothing);
      await session.get(path);
      await session.client.call(path, `${item}.SetSecret`, "(oayays)", [session.secret(Buffer.from("w"))]);
      expect(await session.search({ service: `client ${n}` })).to.deep.equal([[path], []]);
      await session.client.call(path, `${item}.Delete`, "", []);
      expect(await session.search({ service: `client ${n}` })).to.deep.equal(nothing);
    };
    const all = () => Promise.all(sessions.map(work));
    await all();
    expect(await lists()).to.equal(before);
    const working = all();
    await mustPut(server(), "keyring/login/foreign", storeAs("another program"));
    const session = await opened(await BusClient.to(socket));
    expect(await session.search({ service: "another program" })).to.deep.equal([[`${loginPath}/foreign`], []]);
    await working;
  });

  it("a command that does not use its keyring loads no index and makes no token", async () => {
    const made = async () => (await records()).filter(({ event }) => event === "token-create").length;
    const before = [await made(), await lists()];
    const { code, stderr } = await runHere(["keyring", "--", "sh", "-c", "exit 3"], { STRONGROOM_HOME: server().home });
    expect(code, stderr).to.equal(3);
    expect([await made(), await lists()]).to.deep.equal(before);
  });

  it("a lock reloads the index before a search is answered", async () => {
    const { session } = await missed();
    const before = await lists();
    await mustLock(server());
    const waiting = session.search(missing);
    await mustUnlock(server());
    expect(await waiting).to.deep.equal(nothing);
    expect(await lists()).to.be.above(before);
  });
});

describe("hostile peers of the keyring", () => {
  const server = shareLocalServer({}, mustInit);
  let socket = "";
  before(async () => {
    ({ socket } = await startKeyring(server()));
  });
  const auth = "\0AUTH EXTERNAL 30\r\n";
  const call = (serial: number, member: string, path: string, name: string) =>
    writeMessage({ type: 1, flags: 0, serial, path, member, interface: name, signature: "", body: [] });
  const [busPath, busName] = ["/org/freedesktop/DBus", "org.freedesktop.DBus"] as const;
  const greeting = Buffer.concat([Buffer.from(`${auth}BEGIN\r\n`), call(1, "Hello", busPath, busName)]);

  async function raw(bytes: string | Uint8Array, path = socket) {
    const peer = connect(path);
    later(() => void peer.destroy());
    peer.on("error", () => {}).resume();
    await once(peer, "connect");
    peer.write(bytes);
    return peer;
  }

  async function mustServe(): Promise<void> {
    const session = await TestSession.open(await BusClient.to(socket), "plain");
    const path = await session.create({ a: "b" }, Buffer.from("v"));
    expect((await session.get(path)).toString()).to.equal("v");
    session.client.socket.destroy();
  }

  const huge = Buffer.concat([
    Buffer.from(`${auth}BEGIN\r\n`),
    Buffer.from("6c010001ffffff0701000000", "hex"),
    Buffer.alloc(8, 1),
  ]);
  const dropped: readonly (readonly [string, string | Uint8Array])[] = [
    ["speaks another protocol", "GET / HTTP/1.1\r\n\r\n"],
    ["sends a line without end", `\0${"A".repeat(5_000)}`],
    ["begins without authentication", "\0BEGIN\r\n"],
    ["sends no message after its greeting", `${auth}BEGIN\r\n${"x".repeat(64)}`],
    ["announces a message of 128 MiB", huge],
  ];
  for (const [what, bytes] of dropped) {
    it(`a peer that ${what} is disconnected, and others are served`, async () => {
      const peer = await raw(bytes);
      if (!peer.destroyed) await once(peer, "close");
      await mustServe();
    });
  }

  it("a peer that calls before Hello is disconnected, and others are served", async () => {
    const early = call(1, "LockService", root, service);
    const peer = await raw(Buffer.concat([Buffer.from(`${auth}BEGIN\r\n`), early]));
    if (!peer.destroyed) await once(peer, "close");
    await mustServe();
  });

  const floods: readonly (readonly [string, string | Uint8Array])[] = [
    ["say nothing", "\0"],
    ["greet alone", greeting],
    ["call and stay", Buffer.concat([greeting, call(2, "ListNames", busPath, busName)])],
  ];
  for (const [what, bytes] of floods) {
    it(`600 connections that ${what} take no places from other clients`, async () => {
      const known = await BusClient.to(socket);
      const connect = async () => {
        const peers = await Promise.all(Array.from({ length: 200 }, () => raw(bytes).catch(() => null)));
        expect(await known.property(loginPath, "Collection", "Label")).to.equal("Login");
        return peers;
      };
      const peers = [...(await connect()), ...(await connect()), ...(await connect())]; // fewer at a time than there are places
      await mustServe();
      expect(await known.property(loginPath, "Collection", "Label")).to.equal("Login");
      for (const peer of peers) peer?.destroy();
    });
  }

  it("a peer that never reads its replies is disconnected", async () => {
    const session = await TestSession.open(await BusClient.to(socket), "plain");
    const path = await session.create({ large: "1" }, Buffer.alloc(1_000_000, 120));
    session.client.socket.pause();
    const closed = new Promise((resolve) => session.client.socket.once("close", resolve));
    for (let n = 0; n < 12; n++) void session.get(path).catch(() => {});
    await mustServe();
    session.client.socket.resume();
    session.client.socket.destroy();
    await closed;
  });

  it("peers that hold the most unfinished messages are disconnected, and others are served", async () => {
    const begun = Buffer.concat([
      Buffer.from(`${auth}BEGIN\r\n`),
      Buffer.from("6c010001f0ff6f000100000000000000", "hex"), // announces 7 MiB
      Buffer.alloc(6 * 2 ** 20),
    ]);
    const known = await BusClient.to(socket);
    const peers = await Promise.all(Array.from({ length: 10 }, () => raw(begun)));
    while (peers.every((peer) => !peer.destroyed)) await mustServe();
    expect(await known.property(loginPath, "Collection", "Label")).to.equal("Login");
    for (const peer of peers) peer.destroy();
  });

  it("limits of rules, sessions, prompts and items in memory apply to each client separately", async () => {
    const session = await TestSession.open(await BusClient.to(socket), "plain");
    const { client } = session;
    const addRule = (rule: string) =>
      client.call("/org/freedesktop/DBus", "org.freedesktop.DBus.AddMatch", "s", [rule]);
    await mustFail(addRule(`type=${" ".repeat(1_000_000)}'`), "LimitsExceeded");
    const opened = Array.from({ length: 300 }, () => TestSession.open(client, "plain").catch(String));
    expect((await Promise.all(opened)).filter((each) => String(each).includes("LimitsExceeded"))).not.to.have.length(0);
    const memory = `${root}/collection/session`;
    const keep = (n: number) => session.create({ n: String(n) }, Buffer.alloc(2 ** 20), false, memory).catch(String);
    const kept = await Promise.all(Array.from({ length: 18 }, (_, n) => keep(n)));
    expect(kept.filter((each) => each.includes("LimitsExceeded"))).not.to.have.length(0);
    const paths = kept.filter((each) => each.startsWith(memory));
    const all = client.call(root, `${service}.GetSecrets`, "aoo", [paths, session.path]);
    await mustFail(all, "LimitsExceeded");
    const repeated = await client.call(root, `${service}.GetSecrets`, "aoo", [
      Array(1_000).fill(paths[0]),
      session.path,
    ]);
    expect(repeated[0]).to.have.length(1);
    await mustServe();
    for (const path of paths) await client.call(path, `${item}.Delete`, "", []);
  });
});
