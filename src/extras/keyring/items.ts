/**
 * Items of the keyring as secrets of the vault: PREFIX/COLLECTION/ID, with label, attributes and content type in `custom`. An
 * index of all attributes lives while the vault is unlocked; values are read one by one. The collection `session` is in memory.
 */
import { isUtf8 } from "node:buffer";
import { createHmac, randomBytes } from "node:crypto";
import { ownCopy } from "../../cli/kit/dbus/wire.js";
import type { Io } from "../../cli/kit/io.js";
import { withHints } from "../../cli/kit/output.js";
import {
  type SecretEntry,
  type Stored,
  type StrongroomClient,
  StrongroomError,
  type VaultStatus,
} from "../../client/client.js";
import { BusError } from "./bus.js";

type Bytes = Uint8Array<ArrayBuffer>;
export type Attributes = Readonly<Record<string, string>>;

export type Item = {
  readonly collection: string;
  readonly id: string;
  readonly label: string;
  readonly attributes: Attributes;
  readonly contentType: string;
  readonly created: number;
  readonly modified: number;
  /** The vault's entry; null in the collection `session`. */
  readonly entry: SecretEntry | null;
};

export type Collection = {
  readonly name: string;
  readonly label: string;
  readonly aliases: readonly string[];
  readonly created: number;
  readonly modified: number;
  readonly items: ReadonlyMap<string, Item>;
  /** The secret that keeps label, aliases and key, where there is one. */
  readonly marker: SecretEntry | null;
};

export type NewItem = Pick<Item, "label" | "attributes" | "contentType"> & { readonly value: Uint8Array };

export const [login, session] = ["login", "session"];
const markerId = ".collection";
const [labelName, contentTypeName, keyName] = ["label", "content-type", "key"];
const [attributePrefix, aliasPrefix] = ["attr:", "alias:"];
const [text, binary] = ["text/plain", "application/octet-stream"];

/** How long a locked vault, or a server that restarts, is waited for. */
const patienceMs = 20_000;
const pollMs = 100;
/** Age from which an index that lacks changes is loaded again after it was used. */
const freshMs = 2_000;
const mostInBatch = 1_000;
/** Limit of the collection in memory, in bytes of values and UTF-16 units of texts. */
const mostMemory = 16 * 2 ** 20;

type Filling = Collection & { readonly items: Map<string, Item> };
/** `changes`: the vault's number of changes up to which the index has all of them; null where the vault counts none. */
type Index = { collections: Map<string, Filling>; readonly loadedAt: number; changes: number | null };
type Edit = (collections: Map<string, Filling>) => void;

/** `client`: has a token for the prefix; asked again after its token has ended. */
export type VaultAccess = {
  readonly status: () => Promise<VaultStatus>;
  readonly client: (isRefused: boolean) => Promise<StrongroomClient>;
};

export class VaultItems {
  readonly #io: Io;
  readonly #access: VaultAccess;
  readonly #prefix: string;
  readonly #memory = new Map<string, { readonly item: Item; readonly value: Bytes }>();
  #index: Index | null = null;
  /** The index that is being loaded, and the changes since that began, which it may have missed. */
  #partial: { readonly index: Index; readonly edits: Edit[] } | null = null;
  #loading: Promise<Index> | null = null;
  #next: Promise<Index> | null = null;
  /** Changes are made one after the other. */
  #changes: Promise<unknown> = Promise.resolve();
  /** Requests that no other of them may overlap: changes, and the vault's state between changes. */
  #alone: Promise<unknown> = Promise.resolve();
  #asked: Promise<VaultStatus | null> | null = null;

  /** @param prefix ends in a slash */
  constructor(io: Io, access: VaultAccess, prefix: string) {
    this.#io = io;
    this.#access = access;
    this.#prefix = prefix;
  }

  /** Whether the vault is locked now, or cannot be reached. */
  async isLocked(): Promise<boolean> {
    return (await this.#unlockedState()) === null;
  }

  /** Returns null while the vault is locked or cannot be reached, and drops the index. */
  async #unlockedState(): Promise<VaultStatus | null> {
    const status = await this.#access.status().catch(() => null);
    if (status?.locked === false) return status;
    this.#index = null;
    return null;
  }

  /**
   * Like `#unlockedState`, between two changes of this process, so that all that it has counted is in the vault's number of
   * changes and nothing else of its own. Callers share a request that has not begun.
   */
  #stateBetweenChanges(): Promise<VaultStatus | null> {
    this.#asked ??= this.#inOrder(() => {
      this.#asked = null;
      return this.#unlockedState();
    });
    return this.#asked;
  }

  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#alone.then(work);
    this.#alone = done.catch(() => {});
    return done;
  }

  /** Begins to load the index if there is none, so that the first search need not. */
  warm(): void {
    if (this.#index === null && this.#loading === null) this.#refresh();
  }

  #refresh(): void {
    void this.#load().catch(() => {});
  }

  /** Returns the collections, by name. @param isMissed the caller did not find what it wants in those of before */
  async collections(isMissed = false): Promise<ReadonlyMap<string, Collection>> {
    return this.#waiting(async () => {
      if (isMissed) await this.#loading?.catch(() => {}); // its index may be complete
      const state = await this.#stateBetweenChanges();
      if (state === null) throw new StrongroomError("VAULT_LOCKED", "the vault is locked");
      return this.#withMemory(await this.#indexAt(state, isMissed));
    });
  }

  /** Returns the index, of which a caller that missed something gets one with all changes up to the vault's state. */
  async #indexAt(state: VaultStatus, isMissed: boolean): Promise<Index> {
    const known = this.#index;
    if (known === null) return this.#loading ?? this.#load();
    if (known.changes === state.changes) return known;
    if (isMissed) return this.#load();
    if (this.#io.clock.now() - known.loadedAt > freshMs) this.#refresh();
    return known;
  }

  /** Returns the value, which the caller wipes. @throws BusError */
  async read({ collection, id }: Item): Promise<Bytes> {
    const held = this.#memory.get(id);
    if (collection === session && held !== undefined) return ownCopy(held.value);
    const path = this.#path(collection, id);
    return this.#found(collection, id, async (client) => (await client.getBytes(path)).reveal());
  }

  /** Stores a new item, or with `replace` a new version of the item with equal attributes that was changed last. */
  create(
    collection: string,
    made: NewItem,
    replace: boolean,
  ): Promise<{ readonly item: Item; readonly isNew: boolean }> {
    return this.#inTurn(async () => {
      const equal = replace ? await this.#findEqual(collection, made.attributes) : null;
      if (equal !== null) return { item: await this.#store(collection, equal.id, made, equal.entry), isNew: false };
      if (!replace || collection === session) {
        return { item: await this.#store(collection, newId(), made, null), isNew: true };
      }
      return this.#createEqual(collection, made);
    });
  }

  /** Replaces label, attributes or value. @param value null: it stays */
  change(item: Item, fields: Partial<Omit<NewItem, "value">>, value: Uint8Array | null): Promise<Item> {
    return this.#inTurn(async () => {
      const changed = { ...item, ...fields };
      if (value !== null || item.entry === null) {
        const kept = value ?? (await this.read(item));
        const storing = this.#store(item.collection, item.id, { ...changed, value: kept }, item.entry);
        return await storing.finally(() => value === null && kept.fill(0));
      }
      const { collection, id, entry } = item;
      const custom = customTexts(changed, entry);
      const change = (client: StrongroomClient) => client.changeMetadata(this.#path(collection, id), { custom });
      const stored = await this.#found(collection, id, this.#counting(change));
      return this.#learn(collection, id, stored, entry);
    });
  }

  /** Moves an item to the trash. @throws BusError */
  remove({ collection, id }: Item): Promise<void> {
    return this.#inTurn(async () => {
      const path = this.#path(collection, id);
      if (collection !== session)
        await this.#found(
          collection,
          id,
          this.#counting((client) => client.trash(path)),
        );
      this.#forget(collection, id);
    });
  }

  /** Makes an empty collection; returns its name. */
  addCollection(label: string, aliases: readonly string[]): Promise<string> {
    return this.#inTurn(async () => {
      const taken = await this.collections(true);
      const word =
        label
          .normalize("NFC")
          .toLowerCase()
          .replace(/[^\p{L}\p{N}]+/gu, "-")
          .slice(0, 64) || "collection";
      let name = word;
      for (let n = 2; taken.has(name); n++) name = `${word}-${n}`;
      await this.#mark(name, label, aliases);
      return name;
    });
  }

  /** Changes a collection's label or aliases. @param aliases null: they stay */
  setCollection(name: string, label: string, aliases: readonly string[] | null): Promise<void> {
    return this.#inTurn(async () => {
      const { aliases: before = [] } = (await this.collections(true)).get(name) ?? {};
      await this.#mark(name, label, aliases ?? before);
    });
  }

  /** Moves a collection with its items to the trash. */
  removeCollection(name: string): Promise<void> {
    return this.#inTurn(async () => {
      const { items = new Map<string, Item>(), marker = null } = (await this.collections(true)).get(name) ?? {};
      const ids = [...items.keys(), ...(marker === null ? [] : [markerId])];
      for (let from = 0; from < ids.length; from += mostInBatch) {
        const trashes = ids.slice(from, from + mostInBatch).map((id) => ({ trash: this.#path(name, id) }));
        await this.#waiting((client) => client.batch(trashes));
      }
      await this.#load();
    });
  }

  /** Wipes what is in memory. */
  close(): void {
    for (const { value } of this.#memory.values()) value.fill(0);
    this.#memory.clear();
  }

  async #mark(name: string, label: string, aliases: readonly string[]): Promise<void> {
    const { [keyName]: key = randomBytes(16).toString("hex") } =
      (await this.collections()).get(name)?.marker?.metadata.custom ?? {};
    const named = aliases.map((alias) => [aliasPrefix + alias, ""]);
    const custom = { [labelName]: label, [keyName]: key, ...Object.fromEntries(named) };
    await this.#waiting((client) => client.put(this.#path(name, markerId), "", { custom, replaceMetadata: true }));
    await this.#load();
  }

  async #findEqual(collection: string, attributes: Attributes): Promise<Item | null> {
    for (const isMissed of [false, true]) {
      const { items = new Map<string, Item>() } = (await this.collections(isMissed)).get(collection) ?? {};
      const equal = [...items.values()].filter((item) => canonical(item.attributes) === canonical(attributes));
      if (equal.length > 0) return equal.reduce((last, item) => (item.modified > last.modified ? item : last));
    }
    return null;
  }

  /**
   * Two processes that create an item with equal attributes use the same path, where one finds the other's. The path says
   * nothing of the attributes: it is a MAC of them under the collection's key.
   */
  async #createEqual(collection: string, made: NewItem): Promise<{ readonly item: Item; readonly isNew: boolean }> {
    const key = await this.#collectionKey(collection);
    const id = createHmac("sha256", key).update(canonical(made.attributes)).digest("hex").slice(0, 32);
    try {
      return { item: await this.#store(collection, id, made, "absent"), isNew: true };
    } catch (error) {
      if (!isCode(error, "PRECONDITION_FAILED")) throw error;
    }
    const equal = await this.#findEqual(collection, made.attributes);
    const item = await this.#store(collection, equal?.id ?? newId(), made, equal?.entry ?? null);
    return { item, isNew: equal === null };
  }

  async #collectionKey(name: string): Promise<string> {
    const path = this.#path(name, markerId);
    const custom = { [labelName]: defaultLabel(name), [keyName]: randomBytes(16).toString("hex") };
    const stored = async () => (await this.collections(true)).get(name)?.marker?.metadata.custom ?? {};
    const { [keyName]: known } = this.#index?.collections.get(name)?.marker?.metadata.custom ?? {};
    if (known !== undefined) return known;
    await this.#waiting((client) => client.put(path, "", { custom, ifAbsent: true })).catch((error: unknown) => {
      if (!isCode(error, "PRECONDITION_FAILED")) throw error;
    });
    const { [keyName]: key } = await stored();
    if (key !== undefined) return key;
    const { ...kept } = await stored();
    await this.#waiting((client) => client.changeMetadata(path, { custom: { ...custom, ...kept } }));
    return (await stored())[keyName] ?? "";
  }

  /** @param before what is there; its type, description and time of expiry stay */
  async #store(collection: string, id: string, made: NewItem, before: SecretEntry | "absent" | null): Promise<Item> {
    const { value } = made;
    if (collection === session) return this.#remember(id, made);
    const path = this.#path(collection, id);
    const metadata = before === null || before === "absent" ? {} : before.metadata;
    const condition = before === "absent" ? { ifAbsent: true } : { replaceMetadata: true };
    const entry = before === "absent" ? null : before;
    const options = { ...metadata, custom: customTexts(made, entry), ...condition };
    const put = (client: StrongroomClient) =>
      isUtf8(value) ? client.put(path, value, options) : client.putBytes(path, value, options);
    const stored = await this.#waiting(this.#counting(put));
    return this.#learn(collection, id, stored, entry, isUtf8(value) ? undefined : "base64");
  }

  /** @throws BusError */
  #remember(id: string, { value, ...described }: NewItem): Item {
    const before = this.#memory.get(id);
    const modified = seconds(this.#io.clock.now());
    const { label, attributes, contentType } = described;
    const created = before?.item.created ?? modified;
    const item = { label, attributes, contentType, collection: session, id, created, modified, entry: null };
    const others = [...this.#memory.values()].filter((each) => each !== before);
    if ([...others, { item, value }].reduce((sum, each) => sum + sizeInMemory(each), 0) > mostMemory)
      throw new BusError("LimitsExceeded", "the collection of the session is full");
    before?.value.fill(0);
    this.#memory.set(id, { item, value: ownCopy(value) });
    return item;
  }

  #path(collection: string, id: string): string {
    return `${this.#prefix}${collection}/${id}`;
  }

  /** Puts what was stored into the index. @param before what was there */
  #learn(
    collection: string,
    id: string,
    { path, metadata, version, etag }: Stored,
    before: SecretEntry | null,
    encoding = before?.encoding,
  ): Item {
    const updatedAt = new Date(this.#io.clock.now()).toISOString();
    const described = { path, metadata, version, etag, updatedAt, createdAt: before?.createdAt ?? updatedAt };
    const item = toItem({ ...described, ...(encoding && { encoding }) }, collection, id);
    this.#edit((collections) => {
      const known = collections.get(collection) ?? emptyCollection(collection);
      known.items.set(id, item);
      collections.set(collection, known);
    });
    return item;
  }

  /** Changes the index, and one that is being loaded. */
  #edit(edit: Edit): void {
    if (this.#index !== null) edit(this.#index.collections);
    this.#partial?.edits.push(edit);
  }

  #forget(collection: string, id: string): void {
    if (collection === session) {
      this.#memory.get(id)?.value.fill(0);
      this.#memory.delete(id);
    }
    this.#edit((collections) => collections.get(collection)?.items.delete(id));
  }

  /** One list at a time: a load that is asked for while one runs begins after it. */
  #load(): Promise<Index> {
    if (this.#loading !== null) {
      this.#next ??= this.#loading
        .catch(() => {})
        .then(() => {
          this.#next = null;
          return this.#load();
        });
      return this.#next;
    }
    this.#loading = this.#list().finally(() => {
      this.#loading = null;
    });
    return this.#loading;
  }

  async #list(): Promise<Index> {
    const loadedAt = this.#io.clock.now();
    const client = await this.#access.client(false);
    const { changes = null } = (await this.#stateBetweenChanges()) ?? {};
    const index: Index = { collections: new Map(), loadedAt, changes };
    const edits: Edit[] = [];
    this.#partial = { index, edits };
    try {
      const listed: SecretEntry[] = [];
      for await (const { entries } of client.pages({ prefix: this.#prefix, limit: 1000, background: true })) {
        for (const entry of entries) listed.push(entry);
      }
      index.collections = collectionsIn(listed, this.#prefix);
    } finally {
      this.#partial = null;
    }
    for (const edit of edits) edit(index.collections);
    this.#index = index;
    return index;
  }

  #withMemory({ collections }: Index): ReadonlyMap<string, Collection> {
    const items = new Map([...this.#memory].map(([id, { item }]) => [id, item]));
    const memory = {
      name: session,
      label: "Session",
      aliases: [session],
      created: 0,
      modified: 0,
      items,
      marker: null,
    };
    return new Map([...collections, [session, memory]]);
  }

  #inTurn<T>(change: () => Promise<T>): Promise<T> {
    const made = this.#changes.then(change, change);
    this.#changes = made.catch(() => {});
    return made;
  }

  /** Like `#waiting`, for an item; one that is missing there is forgotten. */
  async #found<T>(collection: string, id: string, work: (client: StrongroomClient) => Promise<T>): Promise<T> {
    try {
      return await this.#waiting(work);
    } catch (error) {
      if (!isCode(error, "NOT_FOUND")) throw error;
      this.#forget(collection, id);
      throw noSuchObject();
    }
  }

  /**
   * Returns a change of secrets that is counted, so that an index with all changes before it has all after it. One that fails is
   * not: if it was made after all, it counts as another program's.
   */
  #counting<T>(change: (client: StrongroomClient) => Promise<T>): (client: StrongroomClient) => Promise<T> {
    return (client) =>
      this.#inOrder(async () => {
        const result = await change(client);
        for (const index of [this.#index, this.#partial?.index ?? null])
          if (index !== null && index.changes !== null) index.changes++;
        return result;
      });
  }

  /** Runs the work; waits for a locked vault, and for a server that restarts. @throws BusError, StrongroomError */
  async #waiting<T>(work: (client: StrongroomClient) => Promise<T>): Promise<T> {
    const until = this.#io.clock.now() + patienceMs;
    for (let isEnded = false; ; ) {
      try {
        return await work(await this.#access.client(isEnded));
      } catch (error) {
        const hadEnded = isEnded;
        isEnded = error instanceof StrongroomError && error.credential === "token";
        if ((!isEnded || hadEnded) && !isAway(error)) throw error;
        if (!isEnded) await this.#untilBack(until);
      }
    }
  }

  async #untilBack(until: number): Promise<void> {
    do {
      if (this.#io.clock.now() >= until) throw vaultIsLocked(this.#io);
      await this.#io.sleep(pollMs);
    } while (await this.isLocked());
  }
}

function sizeInMemory({ item, value }: { readonly item: Item; readonly value: Uint8Array }): number {
  const texts = [item.label, item.contentType, ...Object.entries(item.attributes).flat()];
  return 256 + value.length + texts.reduce((sum, { length }) => sum + length, 0);
}

export function vaultIsLocked(io: Io): BusError {
  return isLocked(withHints(io, "the vault is locked: unlock it with  strongroom unlock"));
}

export function isLocked(message: string): BusError {
  return new BusError("org.freedesktop.Secret.Error.IsLocked", message);
}

export function noSuchObject(): BusError {
  return new BusError("org.freedesktop.Secret.Error.NoSuchObject", "there is no such object");
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof StrongroomError && error.code === code;
}

function isAway(error: unknown): boolean {
  return error instanceof StrongroomError && ["VAULT_LOCKED", "UNREACHABLE", "UNAVAILABLE"].includes(error.code);
}

function newId(): string {
  return randomBytes(16).toString("hex");
}

function seconds(time: number | string): number {
  return Math.floor((typeof time === "string" ? Date.parse(time) : time) / 1000);
}

function canonical(attributes: Attributes): string {
  return JSON.stringify(Object.entries(attributes).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** @param before of which other programs' texts stay */
function customTexts(
  { label, attributes, contentType }: Omit<NewItem, "value">,
  before: SecretEntry | null,
): Attributes {
  const others = Object.entries(before?.metadata.custom ?? {}).filter(([name]) => !isOurs(name));
  const named = Object.entries(attributes).map(([name, value]) => [attributePrefix + name, value]);
  const isUsual = contentType === "" || contentType === text;
  return {
    ...Object.fromEntries(others),
    [labelName]: label,
    ...(!isUsual && { [contentTypeName]: contentType }),
    ...Object.fromEntries(named),
  };
}

function isOurs(name: string): boolean {
  return name === labelName || name === contentTypeName || name.startsWith(attributePrefix);
}

/** A secret that `put` stored has its path as its label. */
function toItem(entry: SecretEntry, collection: string, id: string): Item {
  const { custom = {} } = entry.metadata;
  const attributes = namesAfter(attributePrefix, custom).map((name) => [name, custom[attributePrefix + name] ?? ""]);
  return {
    ...{ collection, id, entry },
    label: custom[labelName] ?? entry.path,
    attributes: Object.fromEntries(attributes),
    contentType: custom[contentTypeName] ?? (entry.encoding === undefined ? text : binary),
    created: seconds(entry.createdAt),
    modified: Date.parse(entry.updatedAt) / 1000,
  };
}

function namesAfter(prefix: string, custom: Attributes): readonly string[] {
  const names = Object.keys(custom).filter((name) => name.startsWith(prefix));
  return names.map((name) => name.slice(prefix.length));
}

function defaultLabel(name: string): string {
  return name === login ? "Login" : name;
}

/** Returns the collections of what is listed; `login` is always there. */
function collectionsIn(listed: readonly SecretEntry[], prefix: string): Map<string, Filling> {
  const collections = new Map([[login, emptyCollection(login)]]);
  for (const entry of listed) {
    const [, name, id] = /^([^/]+)\/(.+)$/s.exec(entry.path.slice(prefix.length)) ?? [];
    if (name === undefined || id === undefined || name === session) continue;
    const before = collections.get(name) ?? emptyCollection(name);
    if (id === markerId) collections.set(name, withMarker(before, entry));
    else {
      before.items.set(id, toItem(entry, name, id));
      collections.set(name, before);
    }
  }
  return collections;
}

function emptyCollection(name: string): Filling {
  const aliases = name === login ? ["default"] : [];
  return { name, label: defaultLabel(name), aliases, created: 0, modified: 0, items: new Map(), marker: null };
}

function withMarker(before: Filling, marker: SecretEntry): Filling {
  const { custom = {} } = marker.metadata;
  const { [labelName]: label = before.label } = custom;
  const times = { created: seconds(marker.createdAt), modified: seconds(marker.updatedAt) };
  return { ...before, ...times, label, aliases: [...before.aliases, ...namesAfter(aliasPrefix, custom)], marker };
}
