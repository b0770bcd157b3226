/**
 * Bearer tokens that are valid, or were until recently, by the SHA-256 of their values. Looking one up in a map is
 * faster than comparing digests as buffers.
 */
import { hash, timingSafeEqual } from "node:crypto";
import type { Clock } from "../clock.js";
import { type EndReason, VaultError } from "../errors.js";
import type { NameRange } from "../paths/path-scope.js";
import { maxDepth, type TokenRecord } from "./token-record.js";
import { isExpiredValue } from "./token-value.js";

/** Who sends a request. `key`: the map's key of its token; `ranges`: its paths. */
export type ClientCaller = {
  readonly key: string;
  readonly token: TokenRecord;
  readonly ranges: readonly NameRange[];
  /** Milliseconds since 1970; null: without end. */
  readonly until: number | null;
  /** Marks a session of the review page, which exists only in memory. */
  readonly session?: true;
};
export type Caller = "root" | ClientCaller;

/** How long a token that has ended is distinguished from a guess, in milliseconds. */
export const rememberedMs = 30 * 24 * 3600 * 1000;

/** `ending`: the reason once `until` has passed. `parent`: the key of the value that a child token ends with. */
type Entry = {
  readonly digest: Uint8Array;
  readonly caller: Caller | null;
  readonly until: number | null;
  readonly ending: EndReason;
  readonly parent?: string;
};

/** A value that may make child tokens. `until`: when it ends, or one above it; `depth`: how many are above it. */
export type ParentValue = {
  readonly caller: Caller;
  readonly digest: string;
  readonly until: number | null;
  readonly depth: number;
};

/** A valid or ended value of a client token. `digest` in base64url. */
export type ClientEntry = Omit<Entry, "digest" | "caller" | "parent"> & {
  readonly digest: string;
  readonly owner: Pick<ClientCaller, "token" | "ranges"> | null;
};

export class Credentials {
  readonly #clock: Clock;
  readonly #root = new Map<string, Entry>();
  /** Sessions of the review page. */
  readonly #sessions = new Map<string, Entry>();
  readonly #clients = new Map<string, Entry>();

  constructor(root: string, clock: Clock) {
    this.#clock = clock;
    this.#root.set(valueKey(root), rootEntry(root, null));
  }

  /** Returns null for an unknown value. @throws VaultError UNAUTHORIZED with the reason for an ended value */
  authenticate(text: string): Caller | null {
    const caller = this.#findCaller(valueKey(text));
    if (caller === null && isExpiredValue(text, this.#clock.now())) throw ended("expired");
    return caller;
  }

  /** Like `authenticate`, with what a child of the value needs. @throws VaultError UNAUTHORIZED */
  parentValue(text: string): ParentValue | null {
    const key = valueKey(text);
    const caller = this.#findCaller(key);
    if (caller === null) return null;
    const digest = Buffer.from(key, "latin1").toString("base64url");
    return { caller, digest, until: earliest(this.#line(key)), depth: this.#line(key).length - 1 };
  }

  /** Returns the name of the client token that a child token descends from, or its own. */
  tokenTree({ key, token }: ClientCaller): string {
    const callers = this.#line(key).map((entry) => entry?.caller ?? "root");
    return callers.findLast((caller) => caller !== "root")?.token.name ?? token.name;
  }

  /** Returns when the value of this digest ends, or one above it; null: never; undefined: it has ended. */
  tokenEnd(digest: string): number | null | undefined {
    const line = this.#line(digestKey(digest));
    return line.every((one) => this.#isLive(one)) ? earliest(line) : undefined;
  }

  /**
   * Checks that a caller's token is still valid. `root`: the value that the root token's caller presented, which may have been
   * replaced since. @throws VaultError UNAUTHORIZED with the reason
   */
  requireValid(caller: Caller, root: string | null = null): void {
    if (caller !== "root") {
      if (this.#findCaller(caller.key) === null) throw ended("revoked");
    } else if (root !== null && this.#root.size > 1 && this.authenticate(root) === null) throw ended("rotated");
  }

  /** Replaces the root token's value. The old one stays valid until `until`, and is not taken for a guess for 30 days more. */
  replaceRoot(text: string, until: number): void {
    for (const [key, entry] of this.#root) if (entry.until === null) this.#root.set(key, { ...entry, until });
    this.addRoot(text);
  }

  /** Makes a further value of the root token valid, until it is replaced. */
  addRoot(text: string): void {
    this.#root.set(valueKey(text), rootEntry(text, null));
  }

  /** Forgets values of client tokens, then adds others. A value that has ended stays so until `forgetEnded`. */
  changeClients(forgotten: readonly string[], added: readonly ClientEntry[]): void {
    const hasEnded = (key: string) => this.#clients.get(key)?.caller === null;
    for (const key of forgotten.map(digestKey)) if (!hasEnded(key)) this.#clients.delete(key);
    for (const [key, entry] of added.map(clientEntry)) {
      if (entry.caller === null || !hasEnded(key)) this.#clients.set(key, entry);
    }
  }

  forgetEnded(digests: readonly string[]): void {
    for (const digest of digests) this.#clients.delete(digestKey(digest));
  }

  /** Returns the record of the client token that the value of this digest belongs to, which may have ended. */
  ownerRecord(digest: string): TokenRecord | null {
    const caller = this.#clients.get(digestKey(digest))?.caller;
    return caller === undefined || caller === null || caller === "root" ? null : caller.token;
  }

  /** Makes a token valid that no document has, until it ends; returns the key of `endSession`. `ranges`: its paths. */
  addSession(text: string, token: TokenRecord, until: number, ranges: readonly NameRange[] = []): string {
    const key = valueKey(text);
    const caller: ClientCaller = { key, token, ranges, until, session: true };
    this.#sessions.set(key, { digest: Buffer.from(key, "latin1"), caller, until, ending: "expired" });
    return key;
  }

  /** Ends the token; its value is then known as revoked. */
  endSession(key: string): void {
    const entry = this.#sessions.get(key);
    if (entry !== undefined) this.#sessions.set(key, { ...entry, caller: null, ending: "revoked" });
  }

  /** The root token's values take precedence. */
  #findEntry(key: string): Entry | undefined {
    return this.#root.get(key) ?? this.#clients.get(key) ?? this.#sessions.get(key);
  }

  #findCaller(key: string): Caller | null {
    const entry = this.#findEntry(key);
    if (entry === undefined || !isDigest(key, entry.digest)) return null;
    const { caller, until, ending } = entry;
    const now = until === null ? 0 : this.#clock.now();
    if (until !== null && now >= until + rememberedMs) return null;
    if (caller === null || (until !== null && now >= until)) throw ended(ending);
    if (entry.parent !== undefined && !this.#line(key).every((one) => this.#isLive(one))) throw ended("revoked");
    return caller;
  }

  /** Returns the entries of a value, of its parent, and so on; null stands for an unknown value. */
  #line(key: string): (Entry | null)[] {
    const line: (Entry | null)[] = [];
    for (let next: string | undefined = key; next !== undefined; ) {
      const entry: Entry | null = (line.length <= maxDepth && this.#findEntry(next)) || null; // a file may name a circle
      line.push(entry);
      next = entry?.parent;
    }
    return line;
  }

  #isLive(entry: Entry | null): boolean {
    return entry !== null && entry.caller !== null && (entry.until === null || this.#clock.now() < entry.until);
  }
}

function earliest(line: readonly (Entry | null)[]): number | null {
  const ends = line.flatMap((entry) => entry?.until ?? []);
  return ends.length === 0 ? null : Math.min(...ends);
}

function valueKey(text: string): string {
  return hash("sha256", text, "binary");
}

function digestKey(digest: string): string {
  return Buffer.from(digest, "base64url").toString("latin1");
}

function clientEntry({ digest: text, owner, until, ending }: ClientEntry): [string, Entry] {
  const digest = Buffer.from(text, "base64url");
  const key = digest.toString("latin1");
  const parent = owner?.token.parent && digestKey(owner.token.parent.digest);
  return [key, { digest, caller: owner && { ...owner, key, until }, until, ending, ...(parent && { parent }) }];
}

function rootEntry(text: string, until: number | null): Entry {
  return { digest: Buffer.from(valueKey(text), "latin1"), caller: "root", until, ending: "rotated" };
}

const presented = Buffer.alloc(32);

/** Constant time. */
function isDigest(key: string, digest: Uint8Array): boolean {
  presented.write(key, 0, 32, "latin1");
  return timingSafeEqual(presented, digest);
}

const remedies: Readonly<Record<EndReason, string>> = {
  expired: "the token has expired: rotate it, or use another one",
  revoked: "the token was revoked: use another one",
  rotated: "the token was replaced by a new value: use that one",
};

function ended(reason: EndReason): VaultError {
  return new VaultError("UNAUTHORIZED", remedies[reason], { credential: "token", reason });
}
