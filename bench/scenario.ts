/** A scenario, and what it can use. */

import { join } from "node:path";
import { later, temporaryDirectory } from "../test/support/clean-up.js";
import { mustUnlock } from "../test/support/test-client.js";
import { filledHome } from "./filled-vaults.js";
import { type Loader, type Loaders, type PacedLoader, startLoaders } from "./measure.js";
import type { Options } from "./options.js";
import type { Outcome } from "./outcome.js";
import { type StartOptions, type StrongroomSubject, startStrongroom } from "./subjects.js";

export type Scenario = {
  readonly name: string;
  readonly about: string;
  /** The sizes of the vaults that it needs, in secrets. */
  vaults(options: Options): readonly number[];
  run(bench: Bench): Promise<Outcome[]>;
};

/** Shared by all scenarios: the options, the load processes, and vaults that are filled once. */
export class Bench {
  readonly options: Options;
  readonly loader: Loader;
  readonly pacer: PacedLoader;
  readonly #homes: Map<number, string>;

  private constructor(options: Options, { loader, pacer }: Loaders, homes: Map<number, string>) {
    this.options = options;
    this.loader = loader;
    this.pacer = pacer;
    this.#homes = homes;
  }

  /** `counts`: the sizes of the vaults to prepare, in secrets. */
  static async prepare(options: Options, counts: readonly number[]): Promise<Bench> {
    const homes = new Map<number, string>();
    for (const count of new Set(counts)) homes.set(count, await filledHome(count));
    return new Bench(options, await startLoaders(), homes);
  }

  home(count: number): string {
    const home = this.#homes.get(count);
    if (home === undefined) throw new Error(`no vault of ${count} secrets was prepared`);
    return home;
  }

  /** Starts an unlocked Strongroom on a vault of `count` secrets; it ends with the scenario. */
  async strongroom(count: number, options: StartOptions = {}): Promise<StrongroomSubject> {
    const subject = await this.#start(this.home(count), options);
    await mustUnlock(subject.server);
    return subject;
  }

  /** Starts a Strongroom without a vault; it ends with the scenario. */
  freshStrongroom(options: StartOptions): Promise<StrongroomSubject> {
    return this.#start(join(temporaryDirectory(), "home"), options);
  }

  async #start(home: string, options: StartOptions): Promise<StrongroomSubject> {
    const { profile } = this.options;
    const nodeFlags = profile === null ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`];
    const flags = [...nodeFlags, ...(options.nodeFlags ?? [])];
    const subject = await startStrongroom(home, { ...options, nodeFlags: flags });
    later(() => subject.server.stop()); // a killed process writes no profile
    return subject;
  }
}
