/** A vault in which all parts change until its server dies, and what must be there then. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AssertionError, expect } from "chai";
import { blobFile } from "../../src/paths/file-name.js";
import { decodeHeader, headerText } from "../../tools/rig/decoder.js";
import type { ServerProcess } from "../../tools/rig/process.js";
import type { TestServer } from "../../tools/rig/server.js";
import {
  type ApiResponse,
  type Json,
  mustInit,
  mustRefuse,
  mustStatus,
  mustSucceed,
  mustUnlock,
  type Send,
  send,
} from "../../tools/rig/test-client.js";
import { unlockWith, untilRotated } from "../support/key-requests.js";
import type { Random } from "../support/random.js";
import { type Ask, Lane } from "./lane.js";
import {
  decryptions,
  type Found,
  keysPart,
  openingTexts,
  renewal,
  type Secret,
  type Secrets,
  type SecretsOptions,
  secretsPart,
  type Table,
  type TransitKey,
  tokensPart,
  transitPart,
} from "./vault-parts.js";

/** `onlySecrets`: nothing but secrets changes. */
type Options = SecretsOptions & { readonly writers: number; readonly onlySecrets: boolean };

/** All kinds of changes, the frequent ones more than once. */
const allKinds: SecretsOptions["kinds"] = [
  ...(["put", "put", "put", "put", "put", "put", "put", "put"] as const),
  ...(["delete", "delete", "delete", "batch", "batch", "description", "bind", "version"] as const),
  ...(["trash", "trash", "untrash", "destroy"] as const),
];

export const allChanges: Options = { writers: 8, paths: 20, longest: 200_000, kinds: allKinds, onlySecrets: false };

const firstPassphrase = "the first passphrase";
/** Share of forced inits among the changes of the keys. */
const initShare = 1 / 12;
/** Share of the keys' changes where one change follows the other. */
const keysShare = 1 / 8;
const dayMs = 24 * 3_600_000;

export class VaultModel {
  acknowledged = 0;
  /** Lives of the server. */
  lives = 0;
  inits = 0;
  /** When true, each lane ends after its current change. */
  resting = false;
  /** When true, the next change of the keys is a forced init. */
  wantsInit = false;
  readonly #onlySecrets: boolean;
  readonly #secrets: readonly Lane<Secrets, Found>[];
  readonly #transit: readonly Lane<Table<TransitKey>, Found>[];
  readonly #tokens = new Lane(tokensPart());
  readonly #keys = new Lane(keysPart(firstPassphrase));
  /** Passphrase of the vault that a running init makes. */
  #coming: string | null = null;
  /** Every path that had a secret at some time. */
  readonly #paths = new Set<string>();

  constructor(options: Options = allChanges) {
    this.#onlySecrets = options.onlySecrets;
    this.#secrets = Array.from({ length: options.writers }, (_, n) => new Lane(secretsPart(n, options)));
    this.#transit = [0, 1].map((n) => new Lane(transitPart(n)));
  }

  begin(server: TestServer): Promise<Json> {
    return mustInit(server, { passphrase: firstPassphrase });
  }

  /** Changes one thing after the other in each lane, until the server dies or all rest. @throws AssertionError */
  async change(server: ServerProcess, random: Random): Promise<void> {
    this.resting = false;
    const secrets = this.#secrets.map((lane) => this.#changeLane(server, lane, random));
    if (this.#onlySecrets) return void (await Promise.all(secrets));
    const transit = this.#transit.map((lane) => this.#changeLane(server, lane, random));
    const tokens = this.#changeLane(server, this.#tokens, random);
    await Promise.all([...secrets, ...transit, tokens, this.#changeKeys(server, random)]);
  }

  /** Makes one change while nothing else changes. A locked server must refuse it, unless it comes with the passphrase. */
  async step(server: TestServer, isLocked: boolean, random: Random): Promise<void> {
    const lanes = isLocked ? [...this.#secrets, ...this.#transit] : this.#others;
    const lane = random.chance(keysShare) ? this.#keys : (lanes[random.below(lanes.length)] ?? this.#keys);
    const refused: Send[] = [];
    const isAllowed = (request: Send) => {
      if (isLocked && (lane !== this.#keys || request.method === "DELETE")) refused.push(request);
      return refused.length === 0;
    };
    await lane.step(random, (request) => this.#ask(server, request), isAllowed);
    for (const request of refused) mustRefuse(await send(server, request), 403, "VAULT_LOCKED");
  }

  /** Replaces the vault by a new one, which is unlocked. */
  async reinit(server: TestServer): Promise<void> {
    await this.#init((request) => this.#ask(server, request));
  }

  /** Unlocks a server where another one's change of the keys has locked it. */
  async unlock(server: TestServer): Promise<void> {
    const [keys] = this.#keys.states;
    while ((await send(server, { path: "/v1/secrets?limit=1" })).status === 403) {
      await mustUnlock(server, keys?.passphrase);
      await untilRotated(server);
    }
  }

  /** Checks what an unlocked server shows, the second time from what it remembers. @throws AssertionError */
  async check(server: TestServer): Promise<void> {
    for (const path of this.paths) this.#paths.add(path);
    for (let time = 1; time <= 2; time++) {
      const found = { ...(await look(server, [...this.#paths])), opens: new Set<string>() };
      for (const lane of this.#others) lane.settle(found);
    }
  }

  /** Checks a restarted server and its home. @throws AssertionError */
  async inspect(server: TestServer): Promise<void> {
    expect(temporaryFiles(server.home).join("\n"), "temporary files").to.equal("");
    await this.reopen(server);
  }

  /** Checks a locked server while it is opened, and records what was found as the only possible state. @throws AssertionError */
  async reopen(server: TestServer): Promise<void> {
    const { initialized, locked, secretCount } = await mustStatus(server);
    expect({ initialized, locked }).to.deep.equal({ initialized: true, locked: true });
    this.#keys.crash(false);
    const opens = await this.#unlock(server);
    const isNew = this.#coming !== null && opens.has(this.#coming);
    this.#coming = null;
    for (const lane of this.#others) lane.crash(isNew);
    for (const path of this.paths) this.#paths.add(path);
    const found = { ...(await look(server, [...this.#paths])), opens };
    expect(secretCount, "secretCount").to.equal(Object.keys(found.secrets).length);
    for (const path of Object.keys(found.secrets)) expect([...this.#paths]).to.include(path);
    for (const lane of [this.#keys, ...this.#others]) lane.settle(found);
    await this.#checkMore(server);
  }

  /** Makes some of what is in the trash of a vault at rest so old that the next server's sweep destroys it. */
  age(home: string, random: Random): void {
    const vault = join(home, "vault");
    const generation = readFileSync(join(vault, "current"), "latin1").trim();
    for (const lane of this.#secrets) {
      lane.revise(({ secrets, trash }) => {
        const [[path, trashed] = []] = Object.entries(trash);
        if (path === undefined || trashed === undefined || trashed.isAged || random.chance(0.5))
          return { secrets, trash };
        const file = blobFile(join(vault, generation, "trash"), path);
        const bytes = readFileSync(file);
        bytes.writeBigUInt64BE(bytes.readBigUInt64BE(5) - BigInt(2 * dayMs), 5);
        writeFileSync(file, bytes, { flush: true });
        return { secrets, trash: { ...trash, [path]: { ...trashed, isAged: true } } };
      });
    }
  }

  /** Waits until the sweep has destroyed what is old, and an interrupted rotation has ended; then inspects the header of a vault in files. */
  async finish(server: TestServer): Promise<void> {
    await untilRotated(server);
    const old = this.#secrets.flatMap((lane) => lane.states.flatMap(({ trash }) => agedPaths(trash)));
    for (;;) {
      const { trash } = await look(server, []);
      if (!old.some((path) => trash[path] !== undefined)) break;
      await sleep(50);
    }
    const [keys] = this.#keys.states;
    if (readdirSync(server.home, { recursive: true, encoding: "utf8" }).includes("vault/current"))
      expect(decodeHeader(headerText(server.home), keys?.passphrase ?? "").oldKey).to.equal(null);
  }

  /** Makes one change whose `METHOD target` matches, after others that it needs. `before` is called right before it. */
  async makeOne(server: TestServer, kind: RegExp, random: Random, before: () => void): Promise<void> {
    for (let isMade = false; !isMade; ) {
      const ask: Ask = async (request) => {
        const isIt = matchesKind(kind, request);
        if (isIt) before();
        const answer = await this.#ask(server, request);
        isMade ||= isIt && answer?.status === 200;
        return answer;
      };
      for (const lane of [...this.#others, this.#keys]) {
        const share = lane === this.#keys ? 0 : 0.2;
        if (!isMade) await lane.step(random, ask, (request) => matchesKind(kind, request) || random.chance(share));
      }
    }
  }

  /** Paths that have a secret. */
  get paths(): readonly string[] {
    return this.#secrets.flatMap((lane) => lane.states.flatMap(({ secrets }) => Object.keys(secrets)));
  }

  get #others() {
    return [...this.#secrets, ...this.#transit, this.#tokens];
  }

  async #changeLane(server: ServerProcess, lane: Pick<Lane<unknown, Found>, "step">, random: Random): Promise<void> {
    let isAlive = true;
    while (isAlive && !this.resting) isAlive = await lane.step(random, (request) => this.#ask(server, request));
  }

  async #changeKeys(server: ServerProcess, random: Random): Promise<void> {
    let isAlive = true;
    while (isAlive && !this.resting) {
      const isInit = this.wantsInit || random.chance(initShare);
      this.wantsInit = false;
      const ask: Ask = (request) => this.#ask(server, request);
      isAlive = isInit ? await this.#init(ask) : await this.#keys.step(random, ask);
    }
  }

  async #init(ask: Ask): Promise<boolean> {
    const passphrase = `number ${++this.inits}`;
    this.#coming = passphrase;
    for (const lane of this.#others) lane.beginInit();
    if (!(await this.#keys.make(renewal(passphrase), ask))) return false;
    for (const lane of this.#others) lane.endInit(true);
    this.#coming = null;
    return true;
  }

  async #ask(server: TestServer & Partial<ServerProcess>, request: Send): Promise<ApiResponse | null> {
    try {
      const answer = await send(server, request);
      if (answer.status < 300) this.acknowledged++;
      return answer;
    } catch (error) {
      if (server.child?.killed && !(error instanceof AssertionError)) return null;
      throw error;
    }
  }

  /** Returns the texts that open, exactly one passphrase among them. */
  async #unlock(server: TestServer): Promise<Set<string>> {
    const opens = new Set<string>();
    for (const text of new Set(this.#keys.states.flatMap(openingTexts))) {
      const { status } = await send(server, unlockWith(text));
      expect(status).to.be.oneOf([200, 401]);
      if (status === 200) opens.add(text);
    }
    const passphrases = new Set(this.#keys.states.map(({ passphrase }) => passphrase));
    const opening = [...passphrases].filter((text) => opens.has(text));
    expect(opening, `of ${passphrases.size} passphrases`).to.have.lengthOf(1);
    return opens;
  }

  /** Versions and ciphertexts, which the states do not show. */
  async #checkMore(server: TestServer): Promise<void> {
    for (const lane of this.#secrets) {
      const paths = Object.keys(lane.states[0]?.secrets ?? {});
      for (const path of paths.slice(0, 2)) await mustHaveVersions(server, path);
    }
    for (const lane of this.#transit) {
      for (const request of decryptions(lane.states[0] ?? {})) mustSucceed(await send(server, request));
    }
  }
}

function agedPaths(trash: Secrets["trash"]): readonly string[] {
  return Object.entries(trash).flatMap(([path, { isAged }]) => (isAged ? [path] : []));
}

function matchesKind(kind: RegExp, { method = "GET", path }: Send): boolean {
  return kind.test(`${method} ${path}`);
}

function temporaryFiles(home: string): string[] {
  return readdirSync(home, { recursive: true, encoding: "utf8" }).filter((name) => name.includes(".tmp-"));
}

type Listed = { readonly path: string; readonly metadata: { readonly description?: string } };

/** Reads the vault. What the list does not have must be missing for a get as well. */
async function look(server: TestServer, paths: readonly string[]): Promise<Omit<Found, "opens">> {
  const list = await read(server, "/v1/secrets");
  const { uses } = (await read(server, "/v1/uses")) as { uses: readonly { path: string; host: string }[] };
  const secrets: Record<string, Secret> = {};
  const entries = list["entries"] as readonly Listed[];
  const got = await getAll(
    server,
    entries.map(({ path }) => path),
  );
  for (const [i, { path, metadata }] of entries.entries()) {
    expect(got[i]?.["metadata"], path).to.deep.equal(metadata);
    const hosts = uses.flatMap((use) => (use.path === path ? [use.host] : [])).sort();
    secrets[path] = { text: String(got[i]?.["value"]), description: metadata.description ?? "", hosts };
  }
  const absent = paths.filter((path) => secrets[path] === undefined);
  for (const { code } of await getAll(server, absent)) expect(code).to.equal("NOT_FOUND");
  const trash = (await read(server, "/v1/trash"))["entries"] as readonly Listed[];
  const transit = (await read(server, "/v1/transit/keys"))["keys"] as readonly {
    name: string;
    latestVersion: number;
  }[];
  const tokens = (await read(server, "/v1/tokens"))["tokens"] as readonly { name: string; can: string[] }[];
  const slots = (await read(server, "/v1/keys"))["keys"] as readonly { kind: string; label: string }[];
  return {
    secrets,
    trash: Object.fromEntries(trash.map(({ path, metadata }) => [path, metadata.description ?? ""])),
    transit: Object.fromEntries(transit.map(({ name, latestVersion }) => [name, latestVersion])),
    tokens: Object.fromEntries(tokens.map(({ name, can }) => [name, can.join()])),
    slots: slots.flatMap(({ kind, label }) => (kind === "key" ? [label] : [])).sort(),
  };
}

async function read(server: TestServer, path: string): Promise<Json> {
  const json = mustSucceed(await send(server, { path }));
  expect(json, path).not.to.have.property("damaged");
  return json;
}

const getsAtOnce = 100; // so that large secrets are within the limit of a batch

async function getAll(server: TestServer, paths: readonly string[]): Promise<Json[]> {
  const results: Json[] = [];
  for (let at = 0; at < paths.length; at += getsAtOnce) {
    const operations = paths.slice(at, at + getsAtOnce).map((get) => ({ get }));
    const answer = mustSucceed(await send(server, { method: "POST", path: "/v1/batch", body: { operations } }));
    results.push(...(answer["results"] as Json[]));
  }
  return results;
}

type Version = { readonly version: number; readonly destroyed?: boolean };

/** A secret has all its versions, of which none is damaged; the oldest opens. */
async function mustHaveVersions(server: TestServer, path: string): Promise<void> {
  const target = `/v1/versions/${encodeURIComponent(path)}`;
  const { versions } = (await read(server, target)) as { versions: readonly Version[] };
  const oldest = versions.filter(({ destroyed = false }) => !destroyed).at(-1)?.version;
  if (oldest !== undefined) await read(server, `${target}?version=${oldest}`);
}
