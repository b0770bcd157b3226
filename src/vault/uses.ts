/**
 * Index of the hosts that secrets are bound to. It says where to look only: whether a request gets a secret is decided in the
 * key worker, by the bindings that are sealed with the secret.
 */
import type { Binding } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { includesPath, type NameRange } from "../paths/path-scope.js";
import type { VaultSecrets } from "./secrets.js";

export type SecretUse = Binding & { readonly path: string };

const sliceEntries = 64;
const pageEntries = 1024;

/** Other servers' changes are seen after this time, in milliseconds. */
const staleMs = 5_000;

const everything: readonly NameRange[] = [{ prefix: "", exact: false }];

export class UseIndex {
  readonly #secrets: VaultSecrets;
  readonly #clock: Clock;
  readonly #isShared: boolean;
  readonly #uses = new Map<string, readonly Binding[]>();
  /** The same, ascending by path; null: it has changed since. Each request at the broker reads it. */
  #sorted: readonly (readonly [path: string, uses: readonly Binding[]])[] | null = null;
  /** Paths that have changed since; null: nothing is known yet, and changes are not recorded. */
  #changed: Set<string> | null = null;
  #builtAt = 0;
  #updating: Promise<void> = Promise.resolve();

  /** @param isShared whether other servers also change the secrets */
  constructor(secrets: VaultSecrets, clock: Clock, isShared: boolean) {
    this.#secrets = secrets;
    this.#clock = clock;
    this.#isShared = isShared;
    secrets.watch((paths) => {
      for (const path of paths) this.#changed?.add(path);
    });
  }

  /** Forgets everything: a new vault has replaced the old one. */
  clear(): void {
    this.#changed = null;
    this.#uses.clear();
    this.#sorted = null;
  }

  /** Returns the bindings of secrets in these ranges, ascending by path. @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  async within(ranges: readonly NameRange[] = everything, prefix = ""): Promise<readonly SecretUse[]> {
    await this.#update();
    this.#sorted ??= [...this.#uses].sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    const found = this.#sorted.filter(([path]) => path.startsWith(prefix) && includesPath(ranges, path));
    return found.flatMap(([path, uses]) => uses.map((use) => ({ path, ...use })));
  }

  /** One update at a time, each after the changes before it. */
  #update(): Promise<void> {
    const update = () => this.#updateOnce();
    this.#updating = this.#updating.then(update, update);
    return this.#updating;
  }

  async #updateOnce(): Promise<void> {
    const isStale = this.#isShared && this.#clock.elapsed() - this.#builtAt > staleMs;
    if (this.#changed === null || isStale) return this.#build();
    const noted = this.#changed;
    const changed = [...noted];
    noted.clear();
    try {
      await this.#describe(changed);
    } catch (error) {
      for (const path of changed) noted.add(path);
      throw error;
    }
  }

  async #build(): Promise<void> {
    this.#changed = new Set();
    this.#uses.clear();
    this.#sorted = null;
    try {
      const all = { prefix: "", after: "" };
      for await (const paths of this.#secrets.space.pages(all, pageEntries)) await this.#describe(paths);
      this.#builtAt = this.#clock.elapsed();
    } catch (error) {
      this.clear();
      throw error;
    }
  }

  async #describe(paths: readonly string[]): Promise<void> {
    for (let at = 0; at < paths.length; at += sliceEntries) {
      const slice = paths.slice(at, at + sliceEntries);
      const described = await this.#secrets.readUses(slice);
      for (const [i, path] of slice.entries()) {
        const uses = described[i] ?? [];
        if (uses.length > 0) this.#uses.set(path, uses);
        else this.#uses.delete(path);
      }
      this.#sorted = null;
    }
  }
}
