/** `strongroom prove`: checks the promises of a running server from outside. Imports nothing of the server. */
import { createHash } from "node:crypto";
import { hostname, release } from "node:os";
import type { OnProgress } from "./attacker.js";
import { type Challenge, challenge, followCanary } from "./canary.js";
import { findPlantedKey } from "./control.js";
import { checkDisk } from "./disk.js";
import { FormatError, type Header, type Keys, openHeader, parseHeader, wipeKeys } from "./format.js";
import { Home, UntrustedHome } from "./home.js";
import { leaveLast } from "./last.js";
import { judge, type Look, lookAt, problemOfCopy, type Wanted } from "./looks.js";
import { gcore, mustBeReadable, readDump } from "./memory.js";
import { checkProgram, nodeHash, packageDirectory } from "./program.js";
import { type Check, CouldNotLook, type Report, type Step, type VaultState, type Verdict } from "./report.js";
import { fewestBytes, type Secret } from "./search.js";
import { checkHeader, checkSecrets } from "./secrets.js";
import { findServer, passphraseBody, RequestError, readToken, Server } from "./server.js";
import { databaseSource, homeSource, type Query, type Source, Unreadable } from "./source.js";
import { checkSurroundings, sharedFiles } from "./surroundings.js";
import { openTransitKeys, transitSecrets } from "./transit-keys.js";
import { factsOfMachine, findWeaknesses } from "./weaknesses.js";

export type ProveOptions = {
  readonly home: string;
  /** Null: the server that the home names. */
  readonly pid: number | null;
  /** A core dump or raw bytes, instead of a process. */
  readonly dump: string | null;
  /** The vault's state when the dump was made; null when that is not known. */
  readonly state: VaultState;
  /** Null: the current vault's. */
  readonly header: string | null;
  /** Asks the vault's database; null when the vault is in the home's files. */
  readonly query: Query | null;
  /** Null: as an attacker, who has none. */
  readonly passphrase: Uint8Array | null;
  /** Takes the server through lock and unlock. */
  readonly lock: boolean;
  readonly canary: boolean;
  /** Waits while others search for a value; null without a challenge. */
  readonly challenge: ((challenge: Challenge) => Promise<void>) | null;
  /** The package whose list of files is believed. */
  readonly program: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly onProgress: (step: string, done: number, total: number) => void;
};

/** Checks everything that can be checked; the verdict is unknown when the essential cannot. */
export async function prove(options: ProveOptions): Promise<Report> {
  const run = new Run(options);
  let reason: string | null = null;
  try {
    await (options.dump === null ? run.process() : run.dump(options.dump));
  } catch (error) {
    reason = expectedFailure(error);
    if (reason === null) throw error;
  } finally {
    run.end();
  }
  const report = run.report(reason);
  if (run.provenHome !== null) leaveLast(run.provenHome, report);
  return report;
}

/** Quotes a word for a shell. */
function quoted(word: string): string {
  return /^[\w./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

const wrongPassphrase = "the passphrase does not open the header";

/** Null for an unexpected error. */
function expectedFailure(error: unknown): string | null {
  if (error instanceof CouldNotLook || error instanceof RequestError || error instanceof Unreadable)
    return error.message;
  if (error instanceof FormatError) return `the header cannot be read: ${error.message}`;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (["ENOENT", "EACCES", "EPERM", "ECONNREFUSED", "ECONNRESET"].includes(code)) return (error as Error).message;
  return null;
}

class Run {
  readonly #options: ProveOptions;
  readonly #checks: Check[] = [];
  readonly #notShown: string[] = [];
  #weaknesses: readonly string[] = [];
  readonly #looks: Look[] = [];
  readonly #begun = performance.now();
  #pid: number | null;
  #home: Home | null = null;
  #server: Server | null = null;
  #header: Header | null = null;
  #keys: Keys | null = null;
  #canary: readonly Secret[] = [];
  #transit: readonly Secret[] = [];
  #unsearchedKeys = 0;
  readonly #source: Source;
  /** SHA-256 of what was looked at, for those who keep the report. */
  readonly #hashes: Record<string, string | null> = {};

  constructor(options: ProveOptions) {
    const { header, query, pid } = options;
    this.#options = options;
    this.#pid = pid;
    this.#source = query === null ? homeSource(() => this.#mustHome(), header) : databaseSource(query, header);
  }

  async process(): Promise<void> {
    if (process.platform !== "linux")
      throw new CouldNotLook("another process's memory can be read on Linux only: use --dump");
    if (this.#pid !== null) mustBeReadable(this.#pid, this.#asRoot());
    const pid = this.#findProcess();
    mustBeReadable(pid, this.#asRoot());
    this.#weaknesses = findWeaknesses(pid);
    this.#checks.push(...checkSurroundings(pid, this.#home, await this.#ports()));
    this.#checkProgram(pid);
    const values = await this.#decode();
    await this.#lookAtMemory(pid);
    await this.#searchDisk(pid, values);
    this.#sayWhatIsNotShown();
  }

  /** The home whose server it looked at; null when it looked at none, or at another process. */
  get provenHome(): Home | null {
    return this.#server === null ? null : this.#home;
  }

  async #lookAtMemory(pid: number): Promise<void> {
    const { lock, canary } = this.#options;
    const isLocked = (await this.#server?.isLocked()) ?? null;
    await this.#challenge(pid, isLocked);
    if (lock) return this.#lookThroughLock(pid, isLocked === true);
    if (canary && isLocked === false) await this.#follow();
    else if (canary) this.#notShown.push("What becomes of a value: the vault is locked");
    const states = { true: "locked", false: "unlocked", null: null } as const;
    await this.#look(pid, states[`${isLocked}`]);
    if (isLocked !== false) await this.#control();
  }

  async #searchDisk(pid: number, values: readonly Buffer[]): Promise<void> {
    const { passphrase } = this.#options;
    this.#progress("files");
    const known = passphrase === null ? [] : this.#secretsOnDisk(passphrase, values);
    const secrets = [...known, ...this.#transit, ...this.#canary];
    if (secrets.length === 0) return;
    const { checks, unsearched } = await checkDisk(this.#home, pid, secrets, this.#source);
    this.#checks.push(...checks);
    for (const file of unsearched) this.#notShown.push(`What is in ${file}: it cannot be read`);
  }

  /** Judges a dump, where it is unknown whether the vault was locked. */
  async dump(file: string): Promise<void> {
    const { header, keys } = await this.#openHeader();
    if (keys !== null) await this.#openTransit(header, keys);
    const wanted = await this.#wanted();
    if (wanted === null) throw new CouldNotLook(wrongPassphrase);
    const copy = readDump(file);
    this.#hashes["dumpSha256"] = createHash("sha256").update(copy.bytes).digest("hex");
    const problem = problemOfCopy(copy, wanted.header);
    const judged = judge(copy, wanted, this.#options.state, null, this.#progress("memory"));
    copy.bytes.fill(0);
    this.#looks.push({ ...judged, stoodStillMs: 0, copiedBytes: copy.bytes.length });
    // A value missing from such a dump shows nothing; a value found in it does.
    this.#checks.push(...judged.checks.filter(({ holds, found }) => problem === null || (!holds && Number(found) > 0)));
    if (problem !== null) throw new CouldNotLook(`${file}: ${problem}. Make a dump with  ${gcore("PID")}`);
    if (this.#options.state === null) {
      this.#notShown.push("Whether the vault was locked when the dump was made: pass --state if you know it");
    }
    this.#notShown.push("Everything but memory: surroundings, program files, secrets, files on disk");
  }

  /** Returns the command line that repeats this call as root. sudo changes PATH, and with HOME the default home. */
  #asRoot(): string {
    const { home, pid, header } = this.#options;
    const flags = [
      ...(pid === null ? [] : [`--pid ${pid}`]),
      ...(header === null ? [] : [`--header ${quoted(header)}`]),
    ];
    return ['sudo env "PATH=$PATH"', `strongroom --home ${quoted(home)} prove --as-attacker`, ...flags].join(" ");
  }

  #findProcess(): number {
    const { home: path, environment } = this.#options;
    const { home, entry } = this.#findServer();
    const pid = this.#pid ?? entry?.pid;
    if (pid === undefined) {
      throw new CouldNotLook(`no server runs on ${path}: start it with  strongroom up  or choose another with --home`);
    }
    this.#pid = pid;
    if (home !== null && entry?.pid === pid) this.#server = new Server(entry, home, readToken(home, environment));
    return pid;
  }

  /** Sends nothing. @throws CouldNotLook */
  #findServer() {
    try {
      const home = this.#openHome();
      return { home, entry: home && findServer(home) };
    } catch (error) {
      throw error instanceof UntrustedHome
        ? new CouldNotLook(`${error.message}: nothing was sent to its server`)
        : error;
    }
  }

  /** Returns null when there is none. @throws UntrustedHome, after which a promise about its files has failed */
  #openHome(): Home | null {
    try {
      this.#home ??= Home.open(this.#options.home);
      return this.#home;
    } catch (error) {
      if (error instanceof UntrustedHome && error.shared !== null) this.#checks.push(sharedFiles([error.shared]));
      throw error;
    }
  }

  #mustHome(): Home {
    const home = this.#openHome();
    if (home === null) throw new CouldNotLook(`${this.#options.home}: no such file or directory`);
    return home;
  }

  /** Null when there is no server to ask. */
  async #ports(): Promise<number[] | null> {
    if (this.#server === null) {
      this.#notShown.push("Which of its TCP ports the process announces: it is not the server of this home");
      return null;
    }
    const status = await this.#server.must("GET", "/v1/status");
    return ["port", "vaultPort", "brokerPort"].map((name) => Number(status[name])).filter(Number.isInteger);
  }

  #checkProgram(pid: number): void {
    const root = packageDirectory(pid);
    if (root === null) {
      this.#notShown.push("The program's files: the process does not show where its program is");
      return;
    }
    const { checks, listHash } = checkProgram(root, this.#options.program);
    this.#checks.push(...checks);
    Object.assign(this.#hashes, { programListSha256: listHash, nodeSha256: nodeHash(pid) });
  }

  /** Opens the header, and secrets with it; returns their values. Once more if a rotation came between. */
  async #decode(): Promise<readonly Buffer[]> {
    let checks: Check[] = [];
    let values: readonly Buffer[] = [];
    for (let attempt = 0; attempt < 3; attempt++) {
      const { header, keys } = await this.#openHeader();
      if (this.#options.passphrase !== null && keys === null) throw new CouldNotLook(wrongPassphrase);
      checks = await checkHeader(header, keys, this.#server);
      if (keys !== null) {
        const compared = await checkSecrets(this.#source, header, keys, this.#server);
        checks.push(...compared.checks, ...(await this.#openTransit(header, keys)));
        values = compared.values;
      }
      if (checks.every(({ holds }) => holds)) break;
    }
    this.#checks.push(...checks);
    return values;
  }

  async #openTransit(header: Header, keys: Keys): Promise<readonly Check[]> {
    const transit = await openTransitKeys(this.#source, header, keys, this.#server);
    this.#transit = transitSecrets(transit.keys);
    this.#unsearchedKeys = transit.left;
    return transit.checks;
  }

  /** Reads the header as it is now, and opens it again only if it has changed. */
  async #openHeader(): Promise<{ readonly header: Header; readonly keys: Keys | null }> {
    const { passphrase } = this.#options;
    const header = parseHeader(await this.#source.header());
    if (!this.#header?.signed.equals(header.signed)) {
      wipeKeys(this.#keys);
      this.#keys = passphrase && openHeader(header, passphrase);
      this.#header = header;
    }
    return { header, keys: this.#keys };
  }

  /** Null while the passphrase does not open the header: it may be changed, and changed back. */
  async #wanted(): Promise<Wanted | null> {
    const { passphrase } = this.#options;
    const opened = await this.#openHeader();
    const isForeign = passphrase !== null && opened.keys === null;
    return isForeign ? null : { ...opened, passphrase, canary: this.#canary, transit: this.#transit };
  }

  async #look(pid: number, state: VaultState): Promise<void> {
    const onProgress = this.#progress(state === null ? "memory" : `memory, ${state}`);
    const look = await lookAt({ pid, server: this.#server, state, wanted: () => this.#wanted(), onProgress });
    this.#looks.push(look);
    this.#checks.push(...look.checks);
  }

  /** Unlocked, locked, unlocked; leaves the vault as it was. */
  async #lookThroughLock(pid: number, wasLocked: boolean): Promise<void> {
    if (wasLocked) await this.#unlock();
    if (this.#options.canary) await this.#follow();
    await this.#look(pid, "unlocked");
    await this.#mustServer().must("POST", "/v1/lock");
    try {
      await this.#look(pid, "locked");
    } finally {
      await this.#unlock();
    }
    await this.#look(pid, "unlocked");
    if (wasLocked) await this.#mustServer().must("POST", "/v1/lock");
  }

  async #unlock(): Promise<void> {
    const body = passphraseBody(this.#options.passphrase ?? new Uint8Array());
    try {
      await this.#mustServer().mustWhenReady("POST", "/v1/unlock", body);
    } finally {
      body.fill(0);
    }
  }

  #mustServer(): Server {
    if (this.#server === null)
      throw new CouldNotLook("the server's address is not known: --pid must be the server of --home");
    return this.#server;
  }

  async #follow(): Promise<void> {
    this.#progress("a value");
    this.#canary = [...this.#canary, ...(await followCanary(this.#mustServer()))];
  }

  async #challenge(pid: number, isLocked: boolean | null): Promise<void> {
    const { challenge: wait } = this.#options;
    if (wait === null) return;
    const server = this.#mustServer();
    if (isLocked)
      throw new CouldNotLook("a locked vault takes no value for --challenge: unlock it with  strongroom unlock");
    const { secret, inControl } = await challenge(server, pid, wait);
    this.#canary = [secret];
    const what = "control: copies in the process that holds the challenge's value";
    this.#checks.push({
      ...{ step: "canary", state: null, what, expected: "1 or more", found: inControl },
      holds: inControl > 0,
    });
  }

  /** For a vault that stayed locked: the method must find a key where there is one. */
  async #control(): Promise<void> {
    this.#progress("control");
    const found = await findPlantedKey();
    const what = "control: a key planted in another process is found";
    const text = found > 0 ? "found" : "not found, so the method has failed";
    this.#checks.push({ step: "attacker", state: null, what, expected: "found", found: text, holds: found > 0 });
  }

  #secretsOnDisk(passphrase: Uint8Array, values: readonly Buffer[]): Secret[] {
    const keys = this.#keys && [this.#keys.masterKey, this.#keys.kek];
    const texts = values.filter(({ length }) => length >= 2 * fewestBytes);
    return [
      { name: "the passphrase", bytes: passphrase, isText: true, pieceBytes: 0 },
      ...(keys ?? []).map((bytes) => ({ name: "the master key or KEK", bytes, isText: false, pieceBytes: 0 })),
      ...texts.map((text) => ({ name: "a value", bytes: text.subarray(0, 64), isText: true, pieceBytes: 0 })),
    ];
  }

  #sayWhatIsNotShown(): void {
    const { passphrase, lock, canary, challenge: wait } = this.#options;
    if (passphrase === null)
      this.#notShown.push("The independent decoder, known keys and files on disk: they need the passphrase");
    else if (passphrase.length < fewestBytes)
      this.#notShown.push("Copies of the passphrase: one of less than 8 bytes cannot be told from other memory");
    if (this.#home === null) this.#notShown.push(`Owners and modes of files: there is no ${this.#options.home}`);
    if (!lock) this.#notShown.push("The other state of the vault: pass --lock to go through lock and unlock");
    if (!canary && wait === null) this.#notShown.push("What becomes of a value: pass --with-canary");
    if (this.#unsearchedKeys > 0)
      this.#notShown.push(`${this.#unsearchedKeys} versions of transit keys: 20 of each type are searched for`);
    if (this.#header?.version === 1)
      this.#notShown.push("The master key in the attacker's scan: a header of version 1 has no check of it");
    this.#notShown.push(
      "Keys in a form other than raw bytes and AES-256 encryption key schedules, such as those of software AES",
      "Memory of the kernel and of earlier processes, and what the server sent to other programs",
      "In which thread the one key lies: the scan sees the memory of one process",
      "Node itself, which is not in the list of program files: its SHA-256 is below",
      "That the list of program files is the release's: compare its SHA-256 with the one that is published",
    );
  }

  #progress(step: string): OnProgress {
    this.#options.onProgress(step, 0, 1);
    return (done, total) => this.#options.onProgress(step, done, total);
  }

  report(reason: string | null): Report {
    const isFailed = this.#checks.some(({ holds }) => !holds);
    const verdict: Verdict = isFailed ? "fails" : reason === null ? "holds" : "unknown";
    const [stoodStillMs, copied, tried, schedules] = [
      Math.max(0, ...this.#looks.map((look) => look.stoodStillMs)),
      Math.max(0, ...this.#looks.map((look) => look.copiedBytes)),
      this.#looks.reduce((sum, { attack }) => sum + attack.tried, 0),
      Math.max(0, ...this.#looks.map(({ attack }) => attack.schedules)),
    ];
    const machine = {
      system: `${process.platform} ${process.arch}`,
      host: hostname(),
      kernel: release(),
      node: process.version,
      ...factsOfMachine(),
      pid: this.#pid,
      memoryMiB: Math.round(copied / 2 ** 20),
      keysTried: tried,
      keySchedules: schedules,
      stoodStillMs: Math.round(stoodStillMs),
      seconds: Math.round((performance.now() - this.#begun) / 100) / 10,
      ...this.#hashes,
    };
    const checks = inOrder(this.#checks);
    const [at, notShown] = [new Date().toISOString(), this.#notShown];
    return { verdict, reason, at, checks, notShown, weaknesses: this.#weaknesses, machine };
  }

  end(): void {
    wipeKeys(this.#keys);
  }
}

const order: readonly Step[] = ["surroundings", "program", "decoder", "known-keys", "attacker", "canary", "disk"];

function inOrder(checks: readonly Check[]): Check[] {
  return [...checks].sort((a, b) => order.indexOf(a.step) - order.indexOf(b.step));
}
