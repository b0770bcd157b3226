/**
 * The Secret Service (org.freedesktop.secrets): its objects, their methods and properties, sessions and prompts. A locked vault
 * is waited for; a collection that a client has locked is not. No search is ever answered as empty because something is locked.
 */
import { type Message, typesIn, type Value, Variant } from "../../cli/kit/dbus/wire.js";
import type { Io } from "../../cli/kit/io.js";
import { printable } from "../../cli/kit/output.js";
import { StrongroomError } from "../../client/client.js";
import { BusError, type Returned, type Service, type Signal } from "./bus.js";
import {
  type Collection,
  type Item,
  isLocked,
  login,
  session as memory,
  noSuchObject,
  type VaultItems,
  vaultIsLocked,
} from "./items.js";
import { openSession, type Session } from "./session.js";

const root = "/org/freedesktop/secrets";
const prefix = "org.freedesktop.Secret";
const none = "/";
const properties = "org.freedesktop.DBus.Properties";

const promptMs = 60_000;
const promptPollMs = 250;
/** Limits of each client. */
const [mostSessions, mostPrompts] = [256, 16];
/** Limit of the secrets in one reply, in bytes: a message may not be longer. */
const mostSecretBytes = 7 * 2 ** 20;

type Questions = {
  /** Asks for the passphrase, and unlocks; false where the user declined. */
  readonly unlock: (signal: AbortSignal) => Promise<boolean>;
  /** Whether a value may go out; null: nothing asks. */
  readonly approve: ((question: string) => Promise<boolean>) | null;
  /** How long an answer counts for an item, in milliseconds. */
  readonly approvalMs: number;
};

type Target =
  | { readonly kind: "Service" }
  | { readonly kind: "Collection"; readonly name: string }
  | { readonly kind: "Item"; readonly name: string; readonly id: string }
  | { readonly kind: "Session" | "Prompt"; readonly path: string };

type Kind = Target["kind"];
type Call = {
  readonly target: Target;
  readonly body: readonly Value[];
  readonly sender: string;
  readonly path: string;
};
type Method = readonly [takes: string, returns: string, run: (call: Call) => Promise<Outcome>];
type Outcome = readonly Value[] | { readonly body: readonly Value[]; readonly wipe: () => void };
type Prompt = {
  readonly owner: string;
  readonly paths: readonly string[];
  readonly ending: AbortController;
  isAsked: boolean;
};

export class SecretService implements Service {
  readonly name = "org.freedesktop.secrets";
  emit: (signal: Signal) => void = () => {};
  readonly #io: Io;
  readonly #items: VaultItems;
  readonly #questions: Questions;
  readonly #sessions = new Map<string, { readonly owner: string; readonly session: Session }>();
  readonly #prompts = new Map<string, Prompt>();
  readonly #locked = new Set<string>();
  readonly #approvedUntil = new Map<string, number>();
  #question: Promise<unknown> = Promise.resolve();
  #numbers = 0;

  constructor(io: Io, items: VaultItems, questions: Questions) {
    this.#io = io;
    this.#items = items;
    this.#questions = questions;
  }

  async call(message: Message, sender: string): Promise<Returned> {
    const { path = "", interface: wanted, member = "", signature, body } = message;
    if (wanted === "org.freedesktop.DBus.Peer" && member === "Ping") return { signature: "", body: [] };
    const target = await this.#targetAt(path);
    if (wanted === "org.freedesktop.DBus.Introspectable")
      return { signature: "s", body: [this.#describe(target.kind)] };
    const table = wanted === properties ? this.#properties : this.#methods[target.kind];
    const isKnown = wanted === undefined || wanted === properties || wanted === `${prefix}.${target.kind}`;
    if (!isKnown) throw new BusError("UnknownInterface", "the object has no such interface");
    const method = table[member];
    if (method === undefined) throw new BusError("UnknownMethod", "the object has no such method");
    const [takes, returns, run] = method;
    if (takes !== signature) throw new BusError("InvalidArgs", `the arguments must be of type ${takes}`);
    const outcome = await run({ target, body, sender, path }).catch((error: unknown) => {
      throw busError(error);
    });
    return "body" in outcome ? { signature: returns, ...outcome } : { signature: returns, body: outcome };
  }

  gone(sender: string): void {
    for (const [path, { owner, session }] of this.#sessions) {
      if (owner !== sender) continue;
      session.end();
      this.#sessions.delete(path);
    }
    for (const { owner, ending } of this.#prompts.values()) if (owner === sender) ending.abort();
  }

  close(): void {
    for (const { session } of this.#sessions.values()) session.end();
    for (const { ending } of this.#prompts.values()) ending.abort();
  }

  readonly #methods: Readonly<Record<Kind, Readonly<Record<string, Method>>>> = {
    Service: {
      OpenSession: ["sv", "vo", async ({ body, sender }) => this.#open(body as [string, Variant], sender)],
      CreateCollection: ["a{sv}s", "oo", ({ body }) => this.#createCollection(body as [Dictionary, string])],
      SearchItems: ["a{ss}", "aoao", async ({ body }) => this.#searchAll(body[0] as Pairs)],
      Unlock: ["ao", "aoo", ({ body, sender }) => this.#unlock(body[0] as string[], sender)],
      Lock: ["ao", "aoo", ({ body }) => this.#lock(body[0] as string[])],
      LockService: ["", "", async () => this.#lockAll()],
      GetSecrets: ["aoo", "a{o(oayays)}", ({ body, sender }) => this.#getSecrets(body as [string[], string], sender)],
      ReadAlias: ["s", "o", async ({ body }) => [await this.#readAlias(String(body[0]))]],
      SetAlias: ["so", "", ({ body }) => this.#setAlias(body as [string, string])],
    },
    Collection: {
      Delete: ["", "o", ({ target }) => this.#deleteCollection(collectionName(target))],
      SearchItems: [
        "a{ss}",
        "ao",
        async ({ target, body }) => [await this.#search(collectionName(target), body[0] as Pairs)],
      ],
      CreateItem: [
        "a{sv}(oayays)b",
        "oo",
        ({ target, body, sender }) =>
          this.#createItem(collectionName(target), body as [Dictionary, Secret, boolean], sender),
      ],
    },
    Item: {
      Delete: ["", "o", ({ target }) => this.#deleteItem(target)],
      GetSecret: ["o", "(oayays)", ({ target, body, sender }) => this.#getSecret(target, String(body[0]), sender)],
      SetSecret: ["(oayays)", "", ({ target, body, sender }) => this.#setSecret(target, body[0] as Secret, sender)],
    },
    Session: { Close: ["", "", async ({ path, sender }) => this.#closeSession(path, sender)] },
    Prompt: {
      Prompt: ["s", "", async ({ path, sender }) => this.#prompt(path, sender)],
      Dismiss: ["", "", async ({ path, sender }) => this.#dismiss(path, sender)],
    },
  };

  readonly #properties: Readonly<Record<string, Method>> = {
    Get: ["ss", "v", async ({ target, body }) => [await this.#property(target, String(body[1]))]],
    GetAll: [
      "s",
      "a{sv}",
      async ({ target }) => {
        const values: Value[] = [];
        for (const name of propertyNames[target.kind]) values.push([name, await this.#property(target, name)]);
        return [values];
      },
    ],
    Set: ["ssv", "", ({ target, body }) => this.#setProperty(target, String(body[1]), body[2] as Variant)],
  };

  async #targetAt(path: string): Promise<Target> {
    if (path === root) return { kind: "Service" };
    const [, room = "", name = "", id] = /^\/org\/freedesktop\/secrets\/(\w+)\/(\w+)(?:\/(\w+))?$/.exec(path) ?? [];
    if (this.#sessions.has(path)) return { kind: "Session", path };
    if (this.#prompts.has(path)) return { kind: "Prompt", path };
    if (room !== "collection" && room !== "aliases") throw noSuchObject();
    const collection = room === "aliases" ? await this.#aliased(decoded(name)) : decoded(name);
    return id === undefined
      ? { kind: "Collection", name: collection }
      : { kind: "Item", name: collection, id: decoded(id) };
  }

  async #aliased(alias: string): Promise<string> {
    if (alias === "default" && (await this.#items.isLocked())) return login;
    const path = await this.#readAlias(alias);
    if (path === none) throw noSuchObject();
    return decoded(path.slice(path.lastIndexOf("/") + 1));
  }

  /** An alias that a client has moved to another collection counts before the one of `login`. */
  async #readAlias(alias: string): Promise<string> {
    if (alias === "default" && (await this.#items.isLocked())) return collectionPath(login);
    const having = [...(await this.#items.collections()).values()].filter(({ aliases }) => aliases.includes(alias));
    const found = having.find(({ name }) => name !== login) ?? having[0];
    return found === undefined ? none : collectionPath(found.name);
  }

  async #setAlias([alias, path]: readonly [string, string]): Promise<Outcome> {
    const target = path === none ? null : collectionName(await this.#targetAt(path));
    if (target !== null) await this.#collection(target);
    if (target === memory) throw new BusError("NotSupported", "the collection of the session has no other alias");
    for (const { name, label, aliases } of (await this.#items.collections(true)).values()) {
      if (name === memory || (name !== target && !aliases.includes(alias))) continue;
      const others = aliases.filter((each) => each !== alias);
      await this.#items.setCollection(name, label, name === target ? [...others, alias] : others);
    }
    return [];
  }

  /** @throws BusError */
  async #collection(name: string): Promise<Collection> {
    for (const isMissed of [false, true]) {
      const found = (await this.#items.collections(isMissed)).get(name);
      if (found !== undefined) return found;
    }
    throw noSuchObject();
  }

  /** @throws BusError */
  async #item(target: Target): Promise<Item> {
    const [name, id] = [collectionName(target), target.kind === "Item" ? target.id : ""];
    for (const isMissed of [false, true]) {
      const found = (await this.#items.collections(isMissed)).get(name)?.items.get(id);
      if (found !== undefined) return found;
    }
    throw noSuchObject();
  }

  #mustBeOpen(name: string): void {
    if (this.#locked.has(name)) throw isLocked("the collection is locked");
  }

  #open([algorithm, input]: readonly [string, Variant], owner: string): Outcome {
    if (count(this.#sessions, owner) >= mostSessions)
      throw new BusError("LimitsExceeded", "this client has too many sessions");
    const { session, output } = openSession(algorithm, input);
    const path = `${root}/session/s${++this.#numbers}`;
    this.#sessions.set(path, { owner, session });
    return [output, path];
  }

  #session(path: string, sender: string): Session {
    const found = this.#sessions.get(path);
    if (found?.owner === sender) return found.session;
    throw new BusError(`${prefix}.Error.NoSession`, "there is no such session");
  }

  #closeSession(path: string, sender: string): Outcome {
    this.#session(path, sender).end();
    this.#sessions.delete(path);
    return [];
  }

  async #createCollection([given, alias]: readonly [Dictionary, string]): Promise<Outcome> {
    const existing = alias === "" ? none : await this.#readAlias(alias);
    if (existing !== none) return [existing, none];
    const label = textIn(given, `${prefix}.Collection.Label`);
    const path = collectionPath(await this.#items.addCollection(label, alias === "" ? [] : [alias]));
    this.#signal(root, "Service", "CollectionCreated", path);
    return [path, none];
  }

  async #deleteCollection(name: string): Promise<Outcome> {
    await this.#collection(name);
    this.#mustBeOpen(name);
    if (name === login || name === memory) throw new BusError("NotSupported", "this collection cannot be deleted");
    await this.#items.removeCollection(name);
    this.#signal(root, "Service", "CollectionDeleted", collectionPath(name));
    return [none];
  }

  async #searchAll(attributes: Pairs): Promise<Outcome> {
    const found = await this.#matching(null, attributes);
    const paths = (wanted: boolean) =>
      found.filter(({ collection }) => this.#locked.has(collection) === wanted).map(itemPath);
    return [paths(false), paths(true)];
  }

  async #search(name: string, attributes: Pairs): Promise<readonly string[]> {
    await this.#collection(name);
    return (await this.#matching(name, attributes)).map(itemPath);
  }

  /** Looks again where nothing is found: another program may have stored it. */
  async #matching(name: string | null, attributes: Pairs): Promise<readonly Item[]> {
    for (const isMissed of [false, true]) {
      const collections = [...(await this.#items.collections(isMissed)).values()];
      const among = collections.filter((collection) => name === null || collection.name === name);
      const found = among.flatMap(({ items }) => [...items.values()].filter((item) => hasAll(item, attributes)));
      if (found.length > 0) return found.sort((a, b) => b.modified - a.modified);
    }
    return [];
  }

  async #unlock(paths: readonly string[], owner: string): Promise<Outcome> {
    if (!(await this.#items.isLocked())) {
      await this.#release(paths);
      return [paths, none];
    }
    if (count(this.#prompts, owner) >= mostPrompts)
      throw new BusError("LimitsExceeded", "this client has too many prompts");
    const path = `${root}/prompt/p${++this.#numbers}`;
    this.#prompts.set(path, { owner, paths, ending: new AbortController(), isAsked: false });
    return [[], path];
  }

  async #release(paths: readonly string[]): Promise<void> {
    for (const path of paths) {
      const target = await this.#targetAt(path).catch(() => null);
      if (target === null || !("name" in target) || !this.#locked.delete(target.name)) continue;
      this.#lockedChanged(target.name, false);
    }
  }

  async #lock(paths: readonly string[]): Promise<Outcome> {
    const isAway = await this.#items.isLocked();
    for (const path of paths) {
      const target = await this.#targetAt(path);
      if (!isAway) await this.#collection(collectionName(target));
      if (this.#locked.has(collectionName(target))) continue;
      this.#locked.add(collectionName(target));
      this.#lockedChanged(collectionName(target), true);
    }
    return [paths, none];
  }

  async #lockAll(): Promise<Outcome> {
    const names = [...(await this.#items.collections()).keys()];
    await this.#lock(names.map(collectionPath));
    return [];
  }

  #lockedChanged(name: string, is: boolean): void {
    const changed: Value = [["Locked", new Variant("b", is)]];
    const body = [`${prefix}.Collection`, changed, []];
    const about = { path: collectionPath(name), interface: properties, member: "PropertiesChanged" };
    this.emit({ ...about, signature: "sa{sv}as", body });
    this.#signal(root, "Service", "CollectionChanged", collectionPath(name));
  }

  async #getSecret(target: Target, path: string, sender: string): Promise<Outcome> {
    const session = this.#session(path, sender);
    const { secret, wipe } = await this.#sealedSecret(await this.#item(target), session, path);
    return { body: [secret], wipe };
  }

  async #getSecrets([paths, path]: readonly [string[], string], sender: string): Promise<Outcome> {
    const session = this.#session(path, sender);
    const secrets: Value[] = [];
    const wipes: (() => void)[] = [];
    const wipeAll = () => wipes.forEach((wipe) => void wipe());
    let bytes = 0;
    try {
      for (const each of new Set(paths)) {
        const item = await this.#targetAt(each)
          .then((target) => this.#item(target))
          .catch(missing);
        if (item === null) continue;
        const { secret, length, wipe } = await this.#sealedSecret(item, session, path);
        secrets.push([each, secret]);
        wipes.push(wipe);
        bytes += each.length + path.length + length;
        if (bytes > mostSecretBytes) throw new BusError("LimitsExceeded", "these are too many secrets for one reply");
      }
    } catch (error) {
      wipeAll();
      throw error;
    }
    return { body: [secrets], wipe: wipeAll };
  }

  async #sealedSecret(item: Item, session: Session, path: string) {
    this.#mustBeOpen(item.collection);
    await this.#mustApprove(item);
    const bytes = await this.#items.read(item);
    const { parameters, value } = session.seal(bytes);
    bytes.fill(0);
    const secret: Value = [path, parameters, value, item.contentType];
    return { secret, length: value.length, wipe: () => void value.fill(0) };
  }

  /** Asks one question at a time. @throws BusError */
  async #mustApprove(item: Item): Promise<void> {
    const { approve, approvalMs } = this.#questions;
    if (approve === null) return;
    const path = itemPath(item);
    const ask = async () => {
      if ((this.#approvedUntil.get(path) ?? 0) > this.#io.clock.now()) return true;
      const isApproved = await approve(`Allow a program to read ${printable(item.label)} from the keyring?`);
      if (isApproved) this.#approvedUntil.set(path, this.#io.clock.now() + approvalMs);
      return isApproved;
    };
    const reply = this.#question.then(ask, ask);
    this.#question = reply.catch(() => {});
    if (!(await reply)) throw new BusError("AccessDenied", "the user did not allow it");
  }

  async #createItem(name: string, [given, secret, replace]: readonly [Dictionary, Secret, boolean], sender: string) {
    const [path, parameters, sealed, contentType] = secret;
    const session = this.#session(path, sender);
    this.#mustBeOpen(name);
    await this.#collection(name);
    const attributes = pairsIn(given, `${prefix}.Item.Attributes`);
    const value = session.open({ parameters, value: sealed });
    const made = { label: textIn(given, `${prefix}.Item.Label`), attributes, contentType, value };
    const { item, isNew } = await this.#items.create(name, made, replace).finally(() => value.fill(0));
    this.#signal(collectionPath(name), "Collection", isNew ? "ItemCreated" : "ItemChanged", itemPath(item));
    return [itemPath(item), none];
  }

  async #setSecret(target: Target, [path, parameters, sealed, contentType]: Secret, sender: string): Promise<Outcome> {
    const session = this.#session(path, sender);
    const item = await this.#item(target);
    this.#mustBeOpen(item.collection);
    const value = session.open({ parameters, value: sealed });
    await this.#items.change(item, { contentType }, value).finally(() => value.fill(0));
    this.#signal(collectionPath(item.collection), "Collection", "ItemChanged", itemPath(item));
    return [];
  }

  async #deleteItem(target: Target): Promise<Outcome> {
    const item = await this.#item(target);
    this.#mustBeOpen(item.collection);
    await this.#items.remove(item);
    this.#signal(collectionPath(item.collection), "Collection", "ItemDeleted", itemPath(item));
    return [none];
  }

  async #property(target: Target, name: string): Promise<Variant> {
    if (!propertyNames[target.kind].includes(name))
      throw new BusError("UnknownProperty", "the object has no such property");
    const known = await this.#whileLocked(target, name);
    if (known !== null) return known;
    if (target.kind === "Service") {
      const names = [...(await this.#items.collections()).keys()];
      return new Variant("ao", names.map(collectionPath));
    }
    const object = target.kind === "Item" ? await this.#item(target) : await this.#collection(collectionName(target));
    if (name === "Label") return new Variant("s", object.label);
    if (name === "Created") return new Variant("t", BigInt(object.created));
    if (name === "Modified") return new Variant("t", BigInt(Math.floor(object.modified)));
    return "items" in object
      ? new Variant("ao", [...object.items.values()].map(itemPath))
      : new Variant("a{ss}", Object.entries(object.attributes));
  }

  /** Returns what is asked before an unlock, which a locked vault must not delay: clients ask for the collections first. */
  async #whileLocked(target: Target, name: string): Promise<Variant | null> {
    const isAway = await this.#items.isLocked();
    if (isAway && name === "Collections") throw vaultIsLocked(this.#io);
    if (name === "Locked") return new Variant("b", isAway || this.#locked.has(collectionName(target)));
    const isLogin = target.kind === "Collection" && target.name === login;
    return isAway && isLogin && name === "Label" ? new Variant("s", "Login") : null;
  }

  async #setProperty(target: Target, name: string, { signature, value }: Variant): Promise<Outcome> {
    const isAttributes = target.kind === "Item" && name === "Attributes" && signature === "a{ss}";
    const isLabel = name === "Label" && signature === "s" && (target.kind === "Item" || target.kind === "Collection");
    if (!isAttributes && !isLabel) throw new BusError("PropertyReadOnly", "the property cannot be set so");
    this.#mustBeOpen(collectionName(target));
    if (target.kind === "Item") {
      const item = await this.#item(target);
      const change = isLabel ? { label: String(value) } : { attributes: Object.fromEntries(value as Pairs) };
      await this.#items.change(item, change, null);
      this.#signal(collectionPath(item.collection), "Collection", "ItemChanged", itemPath(item));
      return [];
    }
    const { name: collection } = await this.#collection(collectionName(target));
    if (collection === memory) throw new BusError("NotSupported", "the collection of the session keeps its label");
    await this.#items.setCollection(collection, String(value), null);
    this.#signal(root, "Service", "CollectionChanged", collectionPath(collection));
    return [];
  }

  #signal(path: string, kind: Kind, member: string, about: string): void {
    this.emit({ path, interface: `${prefix}.${kind}`, member, signature: "o", body: [about] });
  }

  #ownPrompt(path: string, sender: string): Prompt {
    const prompt = this.#prompts.get(path);
    if (prompt?.owner === sender) return prompt;
    throw noSuchObject();
  }

  #prompt(path: string, sender: string): Outcome {
    const prompt = this.#ownPrompt(path, sender);
    if (!prompt.isAsked) void this.#run(path, prompt);
    prompt.isAsked = true;
    return [];
  }

  #dismiss(path: string, sender: string): Outcome {
    const prompt = this.#ownPrompt(path, sender);
    prompt.ending.abort();
    if (!prompt.isAsked) void this.#run(path, prompt);
    prompt.isAsked = true;
    return [];
  }

  /** Ends once the vault is unlocked in whatever way, after a minute, or when the user or the client declines. */
  async #run(path: string, { owner, paths, ending }: Prompt): Promise<void> {
    const until = this.#io.clock.now() + promptMs;
    void this.#questions.unlock(ending.signal).then(
      (isUnlocked) => isUnlocked || ending.abort(),
      () => {},
    );
    let isAway = true;
    while (isAway && !ending.signal.aborted && this.#io.clock.now() < until) {
      isAway = await this.#items.isLocked();
      if (isAway) await this.#io.sleep(promptPollMs, ending.signal).catch(() => {});
    }
    if (!isAway) await this.#release(paths);
    ending.abort();
    this.#prompts.delete(path);
    const body = [isAway, new Variant("ao", isAway ? [] : paths)];
    const about = { path, interface: `${prefix}.Prompt`, member: "Completed", destination: owner };
    this.emit({ ...about, signature: "bv", body });
  }

  #describe(kind: Kind): string {
    const methods = Object.entries(this.#methods[kind]).map(([name, [takes, returns]]) => {
      const argument = (direction: string, type: string) => `<arg direction="${direction}" type="${type}"/>`;
      const given = typesIn(takes).map((type) => argument("in", type));
      return `<method name="${name}">${[...given, ...typesIn(returns).map((type) => argument("out", type))].join("")}</method>`;
    });
    return `<node><interface name="${prefix}.${kind}">${methods.join("")}</interface></node>`;
  }
}

type Pairs = readonly (readonly [string, string])[];
type Dictionary = readonly (readonly [string, Variant])[];
type Secret = readonly [session: string, parameters: Uint8Array, value: Uint8Array, contentType: string];

const propertyNames: Readonly<Record<Kind, readonly string[]>> = {
  Service: ["Collections"],
  Collection: ["Items", "Label", "Locked", "Created", "Modified"],
  Item: ["Locked", "Attributes", "Label", "Created", "Modified"],
  Session: [],
  Prompt: [],
};

function count(objects: ReadonlyMap<string, { readonly owner: string }>, wanted: string): number {
  return [...objects.values()].filter(({ owner }) => owner === wanted).length;
}

/** @throws BusError */
function collectionName(target: Target): string {
  if ("name" in target) return target.name;
  throw noSuchObject();
}

function collectionPath(name: string): string {
  return `${root}/collection/${encoded(name)}`;
}

function itemPath({ collection, id }: Item): string {
  return `${collectionPath(collection)}/${encoded(id)}`;
}

/** Returns a name as a part of an object's path, of which only letters and digits stand for themselves. */
function encoded(name: string): string {
  return name.replace(/[^A-Za-z0-9]/gu, (character) => Buffer.from(character).toString("hex").replace(/../g, "_$&"));
}

function decoded(name: string): string {
  const bytes = (hex: string) => Buffer.from(hex.replaceAll("_", ""), "hex").toString("utf8");
  return name.replace(/(?:_[0-9a-f]{2})+/g, bytes);
}

function hasAll({ attributes }: Item, wanted: Pairs): boolean {
  return wanted.every(([name, value]) => Object.hasOwn(attributes, name) && attributes[name] === value);
}

function textIn(given: Dictionary, name: string): string {
  const { value = "" } = given.find(([each]) => each === name)?.[1] ?? {};
  return typeof value === "string" ? value : "";
}

function pairsIn(given: Dictionary, name: string): Readonly<Record<string, string>> {
  const found = given.find(([each]) => each === name)?.[1];
  return found?.signature === "a{ss}" ? Object.fromEntries(found.value as Pairs) : {};
}

/** @throws the error, unless it is of a missing object */
function missing(error: unknown): null {
  if (error instanceof BusError && error.errorName.endsWith(".NoSuchObject")) return null;
  throw error;
}

/** Returns the error that a client gets. It says nothing that a value could be in. */
function busError(error: unknown): unknown {
  if (!(error instanceof StrongroomError)) return error;
  if (error.code === "BAD_REQUEST") return new BusError("InvalidArgs", printable(error.message));
  if (error.code === "FORBIDDEN" || error.code === "UNAUTHORIZED")
    return new BusError("AccessDenied", "the keyring's token does not permit this");
  return new BusError("Failed", printable(error.message));
}
