/** Owns what a scenario is, and what it is given. */

import { join } from "node:path";
import { later, temporaryDirectory } from "../test/support/clean-up.js";
import { mustUnlock } from "../test/support/test-client.js";
import { filledHome } from "./filled-vaults.js";
import { type Loader, startLoader } from "./measure.js";
import type { Options } from "./options.js";
import type { Outcome } from "./outcome.js";
import { type StartOptions, type StrongroomSubject, startStrongroom } from "./subjects.js";

export type Scenario = {
  readonly name: string;
  readonly about: string;
  /** Of how many secrets it needs vaults. */
  vaults(options: Options): readonly number[];
  run(bench: Bench): Promise<Outcome[]>;
};

/** What scenarios share: the options, one load process, and vaults that are filled once. */
export class Bench {
  readonly options: Options;
  readonly loader: Loader;
  readonly #homes: Map<number, string>;

  private constructor(options: Options, loader: Loader, homes: Map<number, string>) {
    this.options = options;
    this.loader = loader;
    this.#homes = homes;
  }

  /** `counts`: of how many secrets there will have to be vaults. */
  static async prepare(options: Options, counts: readonly number[]): Promise<Bench> {
    const homes = new Map<number, string>();
    for (const count of new Set(counts)) homes.set(count, await filledHome(count));
    return new Bench(options, await startLoader(), homes);
  }

  home(count: number): string {
    const home = this.#homes.get(count);
    if (home === undefined) throw new Error(`no vault of ${count} secrets was prepared`);
    return home;
  }

  /** An unlocked Strongroom on a vault of `count` secrets, until the scenario ends. */
  async strongroom(count: number, options: StartOptions = {}): Promise<StrongroomSubject> {
    const subject = await this.#start(this.home(count), options);
    await mustUnlock(subject.server);
    return subject;
  }

  /** A Strongroom without a vault, until the scenario ends. */
  freshStrongroom(options: StartOptions): Promise<StrongroomSubject> {
    return this.#start(join(temporaryDirectory(), "home"), options);
  }

  async #start(home: string, options: StartOptions): Promise<StrongroomSubject> {
    const { profile } = this.options;
    const nodeFlags = profile === null ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`];
    const subject = await startStrongroom(home, { nodeFlags, ...options });
    later(() => subject.server.stop()); // a killed process writes no profile
    return subject;
  }
}
