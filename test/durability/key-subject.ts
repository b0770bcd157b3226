/** A vault whose passphrase, keys and master key change until its server dies: what must open it then, and what must not. */
import { expect } from "chai";
import { decodeHeader, headerText } from "../../tools/rig/decoder.js";
import { passphrase, type TestServer } from "../../tools/rig/server.js";
import {
  type ApiResponse,
  mustGet,
  mustInit,
  mustPut,
  mustSucceed,
  mustUnlock,
  type Send,
  send,
} from "../../tools/rig/test-client.js";
import {
  changing,
  creating,
  deleting,
  type Key,
  outcomeOf,
  rotating,
  unlockWith,
  untilRotated,
} from "../support/key-requests.js";
import type { Random } from "../support/random.js";

const paths = Array.from({ length: 12 }, (_, n) => `dir${n % 3}/secret${n}`);

export class KeySubject {
  changes = 0;
  rotations = 0;
  /** Exactly one opens the vault: two while a change of it is not acknowledged. */
  #passphrases: readonly string[] = [passphrase];
  readonly #keys = new Map<string, Key>();
  /** Their deletion was not acknowledged. */
  readonly #doubtful = new Map<string, Key>();
  #dead: readonly string[] = [];
  #count = 0;

  async begin(server: TestServer): Promise<void> {
    await mustInit(server);
    for (const path of paths) for (const version of [1, 2]) await mustPut(server, path, `${path} ${version}`);
  }

  /** Changes one thing after the other, until the server dies. */
  async change(server: TestServer, random: Random): Promise<void> {
    try {
      for (;;) {
        await this.#changeOnce(server, random);
        this.changes++;
      }
    } catch (error) {
      if (error instanceof Error && "code" in error && error.name !== "AssertionError") return; // the connection is gone
      throw error;
    }
  }

  /** One passphrase opens, never none and never both; so does every key that is there, and no other; all secrets are. */
  async inspect(server: TestServer): Promise<void> {
    const opening: string[] = [];
    for (const text of this.#passphrases) if (await opens(server, text)) opening.push(text);
    expect(opening, `of ${this.#passphrases.length} passphrases`).to.have.lengthOf(1);
    this.#passphrases = opening;
    for (const { key } of this.#keys.values()) expect(await opens(server, key), "a key").to.equal(true);
    for (const [id, key] of this.#doubtful) if (await opens(server, key.key)) this.#keys.set(id, key);
    for (const key of this.#dead) expect(await opens(server, key), "a deleted key").to.equal(false);
    this.#doubtful.clear();
    for (const path of paths) await mustHold(server, path);
  }

  /** An interrupted rotation finishes. */
  async finish(server: TestServer): Promise<void> {
    await mustUnlock(server, this.#passphrase);
    await untilRotated(server);
    expect(decodeHeader(headerText(server.home), this.#passphrase).oldKey).to.equal(null);
    for (const path of paths) await mustHold(server, path);
  }

  get #passphrase(): string {
    return this.#passphrases[0] ?? "";
  }

  async #changeOnce(server: TestServer, random: Random): Promise<void> {
    const kind = random.pick(["passphrase", "create", "delete", "rotate"]);
    if (kind === "passphrase") return this.#changePassphrase(server);
    if (kind === "rotate") return this.#rotate(server, random);
    return kind === "create" || this.#keys.size === 0 ? this.#create(server) : this.#delete(server, random);
  }

  async #changePassphrase(server: TestServer): Promise<void> {
    const [before, after] = [this.#passphrase, `passphrase ${this.#count++}`];
    this.#passphrases = [before, after];
    mustSucceed(await send(server, changing(before, after)));
    this.#passphrases = [after];
  }

  async #create(server: TestServer): Promise<void> {
    if (this.#keys.size >= 4) return this.#changePassphrase(server);
    const key = mustSucceed(await send(server, creating(`key ${this.#count++}`, this.#passphrase))) as Key;
    this.#keys.set(key.id, key);
  }

  async #delete(server: TestServer, random: Random): Promise<void> {
    await this.#losing(random, (id) => send(server, deleting(id)));
  }

  /** Drops a key, if there is one. While another rotation runs, it is refused. */
  async #rotate(server: TestServer, random: Random): Promise<void> {
    const kept = (id: string) => [...this.#keys.values()].filter((key) => key.id !== id).map(({ key }) => key);
    await this.#losing(random, (id) => send(server, rotating(kept(id), this.#passphrase)), "409 ALREADY_EXISTS");
    this.rotations++;
  }

  /** From the request to its answer, the key may open or not; what is refused leaves it. */
  async #losing(random: Random, request: (id: string) => Promise<ApiResponse>, refusal = "200"): Promise<void> {
    const [id = "", key] = [...this.#keys][random.below(Math.max(1, this.#keys.size))] ?? [];
    if (key !== undefined) {
      this.#doubtful.set(id, key);
      this.#keys.delete(id);
    }
    const outcome = outcomeOf(await request(id));
    expect(outcome).to.be.oneOf(["200", refusal]);
    if (key === undefined) return;
    this.#doubtful.delete(id);
    if (outcome === "200") this.#dead = [...this.#dead, key.key].slice(-2);
    else this.#keys.set(id, key);
  }
}

async function opens(server: TestServer, text: string): Promise<boolean> {
  const request: Send = unlockWith(text);
  const outcome = outcomeOf(await send(server, request));
  expect(outcome).to.be.oneOf(["200", "401 UNAUTHORIZED"]);
  return outcome === "200";
}

async function mustHold(server: TestServer, path: string): Promise<void> {
  expect((await mustGet(server, path))["value"]).to.equal(`${path} 2`);
  const first = mustSucceed(await send(server, { path: `/v1/versions/${path}?version=1` }));
  expect(first["value"]).to.equal(`${path} 1`);
}
