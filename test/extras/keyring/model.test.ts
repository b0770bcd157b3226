/**
 * Random operations of clients at once, in both kinds of session, beside a model of each client's items: what is acknowledged
 * stays, and no item is half-written, also when the keyring, the server or a client is killed.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { type Value, Variant } from "../../../src/cli/kit/dbus/wire.js";
import { preparedHome } from "../../../tools/rig/prepared-home.js";
import { startProcess } from "../../../tools/rig/process.js";
import { shareLocalServer } from "../../../tools/rig/server.js";
import { mustInit, mustUnlock } from "../../../tools/rig/test-client.js";
import { Random, runSeed } from "../../support/random.js";
import { BusClient, CallError, spawnKeyring, startKeyring, TestSession } from "./bus-client.js";

/** Short in the normal suite; 50 clients of 2,000 operations in the long form. */
const clients = Number(process.env["STRONGROOM_KEYRING_CLIENTS"] ?? 5);
const operations = Number(process.env["STRONGROOM_KEYRING_OPERATIONS"] ?? 12);
/** Kills of the server, and of the keyring after a first one. None in the normal suite; 100 in the long form. */
const kills = Number(process.env["STRONGROOM_KEYRING_KILLS"] ?? 0);

type Content = { readonly label: string; readonly group: string; readonly value: string };
/** Items of a client, by path. */
type Model = ReadonlyMap<string, Content>;
/** `after`: what the operation makes of the model once it is acknowledged, with its result. */
type Operation = {
  readonly run: (session: TestSession) => Promise<unknown>;
  readonly after: (result: string) => Model;
};

const item = "org.freedesktop.Secret.Item";
const groups = ["a", "b", "c"] as const;

function newContent(random: Random): Content {
  const value = `${random.next()} `.repeat(1 + random.below(40));
  return { label: `label ${random.below(1000)}`, group: random.pick(groups), value };
}

/** One client, which goes on in a new connection when it has lost the earlier one. */
class Actor {
  readonly #owner: string;
  readonly #kind: "plain" | "encrypted";
  readonly #random: Random;
  model: Model = new Map();
  /** Other states in which the model may be after an operation without a reply. */
  #possible: Operation | null = null;

  constructor(team: string, n: number) {
    this.#owner = `${team} ${n}`;
    this.#kind = n % 2 === 0 ? "plain" : "encrypted";
    this.#random = new Random(runSeed + n);
  }

  /** Runs random operations until there are enough or the connection ends. */
  async act(socket: string, times: number): Promise<void> {
    const session = await this.#open(socket).catch(() => null); // killed before
    if (session === null) return;
    for (let n = 0; n < times; n++) {
      const operation = this.#next();
      this.#possible = operation;
      const result = await operation.run(session).catch((error: unknown) => {
        if (error instanceof CallError) return null;
        throw error;
      });
      if (result === null) return session.client.socket.destroy() && undefined;
      this.model = operation.after(String(result));
      this.#possible = null;
    }
    session.client.socket.destroy();
  }

  /** Compares all that the keyring has with the model, which then is what was found. */
  async check(socket: string): Promise<void> {
    const session = await this.#open(socket);
    const found = await this.#read(session);
    const possible = [this.model, ...(this.#possible === null ? [] : [this.#possible.after("/new")])].map(contents);
    expect(possible, `${this.#owner}, seed ${runSeed}`).to.deep.include(contents(found));
    this.model = found;
    this.#possible = null;
    session.client.socket.destroy();
  }

  async #open(socket: string): Promise<TestSession> {
    return TestSession.open(await BusClient.to(socket), this.#kind);
  }

  async #read(session: TestSession): Promise<Model> {
    const [paths] = await session.search({ owner: this.#owner });
    const found = paths.map(async (path) => {
      const value = (await session.get(path)).toString();
      const label = String(await session.client.property(path, "Item", "Label"));
      const attributes = (await session.client.property(path, "Item", "Attributes")) as [string, string][];
      return [path, { label, value, group: new Map(attributes).get("group") ?? "" }] as const;
    });
    return new Map(await Promise.all(found));
  }

  #next(): Operation {
    const random = this.#random;
    const paths = [...this.model.keys()] as const;
    const path = paths[random.below(paths.length)];
    const known = path === undefined ? undefined : this.model.get(path);
    if (path === undefined || known === undefined || random.chance(0.3)) return this.#create(random.chance(0.8));
    const { label, group, value } = newContent(random);
    const change = (content: Content, run: Operation["run"]): Operation => ({
      run,
      after: () => this.#with(path, content),
    });
    const set = (name: string, to: Variant) => (session: TestSession) =>
      session.client.call(path, "org.freedesktop.DBus.Properties.Set", "ssv", [item, name, to]);
    const setSecret = ({ client }: TestSession, secret: Value) =>
      client.call(path, `${item}.SetSecret`, "(oayays)", [secret]);
    const choices: readonly [Operation, ...Operation[]] = [
      change({ ...known, value }, (session) => setSecret(session, session.secret(Buffer.from(value)))),
      change({ ...known, label }, set("Label", new Variant("s", label))),
      change({ ...known, group }, set("Attributes", new Variant("a{ss}", this.#attributes(group)))),
      change(known, async (session) => expect((await session.get(path)).toString()).to.equal(known.value)),
      change(known, async (session) => this.#mustFind(session, known.group)),
      { run: ({ client }) => client.call(path, `${item}.Delete`, "", []), after: () => this.#with(path, null) },
    ];
    return random.pick(choices);
  }

  #create(replace: boolean): Operation {
    const content = newContent(this.#random);
    const equal = [...this.model].filter(([, { group }]) => group === content.group).map(([path]) => path);
    const create = async (session: TestSession) => {
      const attributes = Object.fromEntries(this.#attributes(content.group));
      const made = await session.create(attributes, Buffer.from(content.value), replace, undefined, content.label);
      expect(equal.includes(made), `${made} of ${equal.join()}`).to.equal(replace && equal.length > 0);
      return made;
    };
    const last = replace ? equal.at(-1) : undefined;
    return { run: create, after: (made) => this.#with(made === "/new" ? (last ?? made) : made, content) };
  }

  #attributes(group: string): [string, string][] {
    return [
      ["owner", this.#owner],
      ["group", group],
    ];
  }

  async #mustFind(session: TestSession, group: string): Promise<void> {
    const wanted = [...this.model].filter(([, content]) => content.group === group).map(([path]) => path);
    expect((await session.search({ owner: this.#owner, group }))[0]).to.have.members(wanted);
  }

  /** Items are in the order of their last change. */
  #with(path: string, content: Content | null): Model {
    const others = [...this.model].filter(([each]) => each !== path);
    return new Map(content === null ? others : [...others, [path, content]]);
  }
}

/** Returns the contents in an order that does not depend on paths. */
function contents(model: Model): readonly string[] {
  return [...model.values()].map(({ label, group, value }) => JSON.stringify([label, group, value])).sort();
}

const actors = (team: string, count: number) => Array.from({ length: count }, (_, n) => new Actor(team, n));

describe("concurrent clients of the keyring", () => {
  const server = shareLocalServer({}, mustInit);

  it("clients find what a model says after random operations, also from another keyring", async function () {
    this.timeout(0);
    const { socket } = await startKeyring(server());
    const all = actors("client", clients);
    await Promise.all(all.map((actor) => actor.act(socket, operations)));
    const another = await startKeyring(server());
    await Promise.all(all.map((actor) => actor.check(another.socket)));
    await Promise.all(all.map((actor) => actor.check(socket)));
  });

  it("clients lose nothing acknowledged and find nothing half-written when the keyring is killed", async function () {
    this.timeout(0);
    const all = actors("survivor", 4);
    for (let n = 0; n <= kills; n++) {
      const keyring = await spawnKeyring(server().home);
      const working = Promise.all(all.map((actor) => actor.act(keyring.socket, 500)));
      await sleep(new Random(runSeed + n).below(600));
      keyring.child.kill("SIGKILL");
      await working;
      const next = await startKeyring(server());
      await Promise.all(all.map((actor) => actor.check(next.socket)));
      await next.stop();
    }
  });
});

if (kills > 0) {
  describe("clients of the keyring with a killed server", () => {
    it("clients lose nothing acknowledged and find nothing half-written when the server is killed", async function () {
      this.timeout(0);
      const all = actors("survivor", 4);
      const home = preparedHome();
      let server = await startProcess([], { STRONGROOM_HOME: home });
      await mustInit(server);
      const { socket } = await startKeyring(server);
      for (let n = 0; n < kills; n++) {
        const working = Promise.all(all.map((actor) => actor.act(socket, 20)));
        await sleep(new Random(runSeed + n).below(600));
        server.child.kill("SIGKILL");
        await server.stopped;
        server = await startProcess([], { STRONGROOM_HOME: home });
        await mustUnlock(server);
        await working;
        await Promise.all(all.map((actor) => actor.check(socket)));
      }
    });
  });
}
