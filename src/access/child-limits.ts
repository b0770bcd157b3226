/**
 * Limits of child tokens: for each tree of them, which is all that descend from one token of the owner or from the root token;
 * and for all trees together, so that the document that they share with the owner's tokens has room for those.
 */
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { Credentials } from "./credentials.js";
import type { Parent, TokenRecord } from "./token-record.js";
import { maxDepth } from "./token-record.js";
import { rootName } from "./token-request.js";

/** Creations within a second. */
const maxCreations = 20;
const windowMs = 1000;

/** Trees whose creations are remembered before those of the last second alone are. */
const maxRemembered = 1000;

/** Most living child tokens of one tree, and of all trees. */
export type LivingChildren = { readonly ofTree: number; readonly inAll: number };

export class ChildLimits {
  readonly #clock: Clock;
  readonly #credentials: Credentials;
  readonly #maxLiving: LivingChildren;
  /** Times of the last creations, by the tree's name. */
  readonly #creations = new Map<string, readonly number[]>();
  /** Names of the trees of records, which never change. */
  readonly #trees = new WeakMap<TokenRecord, string>();

  constructor(clock: Clock, credentials: Credentials, maxLiving: LivingChildren) {
    this.#clock = clock;
    this.#credentials = credentials;
    this.#maxLiving = maxLiving;
  }

  /** Counts a creation. @throws VaultError RATE_LIMITED */
  spendCreation(parent: Parent): void {
    const [tree, now] = [this.#tokenTree(parent), this.#clock.elapsed()];
    const isRecent = (at: number) => now - at < windowMs;
    const recent = (this.#creations.get(tree) ?? []).filter(isRecent);
    if (recent.length >= maxCreations) {
      throw limited(
        `the token ${tree} makes more than ${maxCreations} child tokens a second`,
        "make fewer, or wait",
        1,
      );
    }
    this.#creations.set(tree, [...recent, now]);
    if (this.#creations.size <= maxRemembered) return;
    for (const [name, times] of this.#creations) if (!times.some(isRecent)) this.#creations.delete(name);
  }

  /** @param tokens no child token among them has ended @throws VaultError RATE_LIMITED */
  refuseTooMany(tokens: readonly TokenRecord[], parent: Parent): void {
    const { ofTree, inAll } = this.#maxLiving;
    const tree = this.#tokenTree(parent);
    const children = tokens.filter((record) => record.parent !== undefined);
    const own = children.filter((record) => this.#treeOfRecord(record) === tree);
    if (own.length >= ofTree)
      throw this.#tooMany(own, `the token ${tree} has ${ofTree} child tokens, the most of one token`);
    if (children.length >= inAll)
      throw this.#tooMany(children, `there are ${inAll} child tokens, the most of one vault`);
  }

  #tooMany(children: readonly TokenRecord[], problem: string): VaultError {
    const ends = children.map(({ expiresAt }) => expiresAt ?? Number.POSITIVE_INFINITY);
    const left = Math.ceil((ends.reduce((a, b) => Math.min(a, b)) - this.#clock.now()) / 1000);
    return limited(problem, "revoke some, or give them a shorter ttl", Math.max(1, Math.min(left, maxWaitSeconds)));
  }

  #tokenTree(parent: Parent): string {
    if (parent.name === rootName) return rootName;
    const owner = this.#credentials.ownerRecord(parent.digest);
    return owner === null ? parent.name : this.#treeOfRecord(owner);
  }

  #treeOfRecord(record: TokenRecord): string {
    const known = this.#trees.get(record);
    if (known !== undefined) return known;
    let [name, parent] = [record.name, record.parent];
    for (let depth = 0; depth < maxDepth && parent !== undefined; depth++) {
      const owner: TokenRecord | null = this.#credentials.ownerRecord(parent.digest);
      [name, parent] = [parent.name, owner?.parent];
    }
    this.#trees.set(record, name);
    return name;
  }
}

/** Even where no child token ends by itself, the owner may revoke some. */
const maxWaitSeconds = 3600;

function limited(problem: string, remedy: string, retryAfter: number): VaultError {
  return new VaultError("RATE_LIMITED", `${problem}: ${remedy}`, { retryAfter });
}
