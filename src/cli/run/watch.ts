/** `run --watch`: notices by etags that secrets of the command have changed, and restarts it or sends it a signal. */
import type { ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { type SecretList, type StrongroomClient, StrongroomError } from "../../client/client.js";
import { folderPrefix, problemOfPath } from "../kit/args/paths.js";
import { pathsIn } from "../kit/args/references.js";
import { type ConnectionFlags, withClient } from "../kit/connection/server.js";
import { clientFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { printable, say } from "../kit/output.js";
import { childPids, runChild } from "../kit/programs/child-process.js";
import { listVariables, type Sources } from "./environment.js";

type WatchOptions = {
  readonly sources: Sources;
  readonly connection: ConnectionFlags;
  readonly quiet: boolean;
  /** Sent to the command after a change; null: the command is restarted. */
  readonly signal: NodeJS.Signals | null;
  readonly intervalMs: number;
  /** Time that the command has to end after TERM, in milliseconds. */
  readonly graceMs: number;
};

/** Time without a further change, in milliseconds, after which the command is told. */
const settledMs = 1_000;

const endings = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/** Etags by path. A secret that cannot be read has its own mark. */
type Etags = ReadonlyMap<string, string>;

type Watched = { readonly folder: string | null; readonly paths: readonly string[] };

/** Runs the command until it ends by itself, or a signal ends it; returns its exit status. @throws CommandFailure */
export async function runWatched(io: Io, start: () => ChildProcess, options: WatchOptions): Promise<number> {
  const { sources, connection } = options;
  const watched = await watchedBy(io, sources, connection);
  let etags = await withClient(io, connection, (client) => watchedEtags(client, watched));
  const ending = new AbortController();
  const end = () => ending.abort();
  for (const signal of endings) process.on(signal, end); // the child gets them from `runChild`
  try {
    return await withClient(io, { ...connection, nonInteractive: true }, async (client) => {
      const watcher = new SecretWatcher(io, client, watched, options);
      for (;;) {
        const run = new WatchedRun(io, start);
        etags = await run.until(watcher, etags, options);
        const status = await run.ended;
        if (!run.wasRestarted) return status;
        etags = (await watcher.untilStartable(ending.signal)) ?? etags;
        if (ending.signal.aborted) return status;
      }
    });
  } finally {
    for (const signal of endings) process.off(signal, end);
  }
}

/** One start of the command. */
class WatchedRun {
  readonly #io: Io;
  readonly ended: Promise<number>;
  #child: ChildProcess | null = null;
  #restarted = false;

  constructor(io: Io, start: () => ChildProcess) {
    this.#io = io;
    this.ended = runChild(io, () => {
      this.#child = start();
      return this.#child;
    });
  }

  /** Whether it was ended because of a change. */
  get wasRestarted(): boolean {
    return this.#restarted;
  }

  /** Resolves when the command has ended, or is to be restarted and was told to end; returns the etags seen last. */
  async until(watcher: SecretWatcher, before: Etags, { signal, quiet, graceMs }: WatchOptions): Promise<Etags> {
    const stop = new AbortController();
    const ended = this.ended.then(
      () => stop.abort(),
      () => stop.abort(),
    );
    let etags = before;
    while (!stop.signal.aborted) {
      const changed = await watcher.change(etags, stop.signal);
      if (changed === null) break;
      etags = changed.etags;
      const what = changed.paths.map(printable).join(", ");
      if (!quiet)
        say(
          this.#io,
          `strongroom: ${what} changed: ${signal === null ? "restarting the command" : `sending ${signal}`}\n`,
        );
      if (signal !== null) this.#child?.kill(signal);
      else {
        this.#restarted = true;
        await this.#terminate(ended, graceMs);
      }
    }
    return etags;
  }

  async #terminate(ended: Promise<void>, graceMs: number): Promise<void> {
    this.#child?.kill("SIGTERM");
    const timer = new AbortController();
    const late = sleep(graceMs, "late", { signal: timer.signal, ref: false }).catch(() => "ended");
    if ((await Promise.race([ended, late])) === "late" && this.#child !== null) killAll(this.#child);
    timer.abort();
    await ended;
  }
}

/** On Node before 22.15 the command is a child of our child, which a KILL does not reach through it. */
function killAll(child: ChildProcess): void {
  const descendants = child.pid === undefined ? [] : childPids(child.pid);
  for (const pid of descendants) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // it has just ended
    }
  }
  child.kill("SIGKILL");
}

type Change = { readonly etags: Etags; readonly paths: readonly string[] };

class SecretWatcher {
  readonly #io: Io;
  readonly #client: StrongroomClient;
  readonly #watched: Watched;
  readonly #options: WatchOptions;
  #problem: string | null = null;

  constructor(io: Io, client: StrongroomClient, watched: Watched, options: WatchOptions) {
    this.#io = io;
    this.#client = client;
    this.#watched = watched;
    this.#options = options;
  }

  /** Waits for a change, and until the changes have settled; returns null once it is aborted. */
  async change(before: Etags, signal: AbortSignal): Promise<Change | null> {
    let last = before;
    let wait = this.#options.intervalMs;
    let missing: readonly string[] = [];
    while (await slept(wait, signal)) {
      const etags = await this.#look();
      if (etags === null) continue;
      const paths = differing(before, etags);
      const isSettled = differing(last, etags).length === 0;
      last = etags;
      wait = paths.length === 0 ? this.#options.intervalMs : Math.min(settledMs, this.#options.intervalMs);
      const gone = missingPaths(this.#watched, etags);
      if (gone.length > 0 && gone.join() !== missing.join())
        this.#warn(
          `no secret at ${gone.map(printable).join(", ")} any more: the command keeps running with the old value`,
        );
      missing = gone;
      if (paths.length > 0 && isSettled && gone.length === 0) return { etags, paths };
    }
    return null;
  }

  /** Waits until the secrets can be read, as they could before the command was told to end; returns null once it is aborted. */
  async untilStartable(signal: AbortSignal): Promise<Etags | null> {
    let missing: readonly string[] = [];
    while (!signal.aborted) {
      const etags = await this.#look("the command waits for it");
      const gone = etags === null ? [] : missingPaths(this.#watched, etags);
      if (etags !== null && gone.length === 0) return etags;
      if (gone.join() !== missing.join())
        this.#warn(`no secret at ${gone.map(printable).join(", ")}: the command waits for it`);
      missing = gone;
      await slept(this.#options.intervalMs, signal);
    }
    return null;
  }

  /** Returns null while the server cannot be asked, and warns once; `consequence` ends the warning. */
  async #look(consequence = "the command keeps running"): Promise<Etags | null> {
    try {
      const etags = await watchedEtags(this.#client, this.#watched);
      this.#problem = null;
      return etags;
    } catch (error) {
      if (!(error instanceof StrongroomError)) throw error;
      const { message } = await clientFailure(error, this.#client);
      const warning = `cannot look for changes: ${message}; ${consequence}`;
      if (warning !== this.#problem) this.#warn(warning);
      this.#problem = warning;
      return null;
    }
  }

  #warn(text: string): void {
    if (!this.#options.quiet) say(this.#io, `strongroom: ${text}\n`);
  }
}

/** Returns false once it is aborted. */
async function slept(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep(ms, undefined, { signal });
    return true;
  } catch {
    return false;
  }
}

async function watchedBy(io: Io, sources: Sources, connection: ConnectionFlags): Promise<Watched> {
  const { prefix } = sources;
  const listed = await listVariables({ ...sources, prefix: undefined }, (work) => withClient(io, connection, work));
  const paths = new Set(listed.flatMap(({ parts }) => pathsIn(parts)));
  return { folder: prefix === undefined ? null : folderPrefix(prefix), paths: [...paths] };
}

/** Looks that do not count as use of the vault, so that it still locks when it is not used. */
async function watchedEtags(client: StrongroomClient, { folder, paths }: Watched): Promise<Etags> {
  const found = new Map<string, string>();
  const note = ({ entries, damaged = [] }: SecretList) => {
    for (const { path, etag } of entries) found.set(path, etag);
    for (const path of damaged) found.set(path, "damaged");
  };
  if (folder !== null)
    for await (const page of client.pages({ prefix: folder, limit: 1000, background: true })) note(page);
  const inFolder = (path: string) => folder !== null && path.startsWith(folder);
  const named = paths.filter((path) => !inFolder(path) && problemOfPath(path) === null);
  // The first path that begins with the name is the name itself, if there is such a secret.
  for (const path of named) note(await client.list({ prefix: path, limit: 1, background: true }));
  return new Map([...found].filter(([path]) => inFolder(path) || paths.includes(path)));
}

function differing(before: Etags, after: Etags): readonly string[] {
  const paths = new Set([...before.keys(), ...after.keys()]);
  return [...paths].filter((path) => before.get(path) !== after.get(path)).sort();
}

/** Secrets that are named one by one: without them the command would not start. */
function missingPaths({ paths }: Watched, etags: Etags): readonly string[] {
  return paths.filter((path) => !etags.has(path));
}
