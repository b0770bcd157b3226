/**
 * Secrets that move to the trash and back, and transit keys, until their server dies: what must be there then. A lane changes
 * one path alone; all lanes run at once.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import type { TestServer } from "../../tools/rig/server.js";
import { type Json, mustInit, mustSucceed, mustUnlock, type Send, send } from "../../tools/rig/test-client.js";
import type { Random } from "../support/random.js";

/** Values at one path: of the secret, and of the one in the trash; null: there is none. */
type Pair = { readonly secret: string | null; readonly trashed: string | null };

/** Versions of a transit key; 0: there is none. `ciphertexts`: what it has encrypted. */
type Key = { readonly versions: number; readonly ciphertexts: readonly string[] };

type Lane = { step(server: TestServer, random: Random): Promise<void>; inspect(server: TestServer): Promise<void> };

const dayMs = 24 * 3_600_000;
const plaintext = Buffer.from("kept").toString("base64");

export class BesideSubject {
  changes = 0;
  readonly #secrets = Array.from({ length: 8 }, (_, n) => new SecretLane(`dir${n % 3}/secret${n}`));
  readonly #keys = Array.from({ length: 4 }, (_, n) => new KeyLane(`dir${n % 2}/key${n}`));

  async begin(server: TestServer): Promise<void> {
    await mustInit(server);
  }

  async inspect(server: TestServer): Promise<void> {
    await mustUnlock(server);
    for (const lane of this.#lanes) await lane.inspect(server);
    for (const path of ["/v1/secrets", "/v1/trash", "/v1/transit/keys"])
      expect(mustSucceed(await send(server, { path }))).not.to.have.property("damaged");
  }

  /** Makes some of what is in the trash of a vault at rest so old that the next server's sweep destroys it. */
  age(home: string, random: Random): void {
    for (const lane of this.#secrets) if (random.chance(0.4)) lane.age(home);
  }

  /** Whether the sweep still has something to destroy. */
  async isSweeping(server: TestServer): Promise<boolean> {
    const found = await Promise.all(this.#secrets.map((lane) => lane.isSweeping(server)));
    return found.includes(true);
  }

  /** Changes one thing after the other in each lane, until the server dies. */
  async change(server: TestServer, random: Random): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => this.#changeLane(lane, server, random)));
  }

  get #lanes(): readonly Lane[] {
    return [...this.#secrets, ...this.#keys];
  }

  async #changeLane(lane: Lane, server: TestServer, random: Random): Promise<void> {
    try {
      for (;;) {
        await lane.step(server, random);
        this.changes++;
      }
    } catch (error) {
      if (error instanceof Error && "code" in error && error.name !== "AssertionError") return; // the connection is gone
      throw error;
    }
  }
}

class SecretLane implements Lane {
  readonly #path: string;
  /** Values that may be there: two while a change is not acknowledged. */
  #states: readonly Pair[] = [{ secret: null, trashed: null }];
  #isAged = false;
  #count = 0;

  constructor(path: string) {
    this.#path = path;
  }

  async step(server: TestServer, random: Random): Promise<void> {
    const { secret, trashed } = this.#state;
    const kind = random.pick(["put", "put", "trash", "trash", "untrash", "destroy", "version"]);
    const path = this.#path;
    if (kind === "put" || (secret === null && trashed === null)) {
      const value = `${path} ${this.#count++}`;
      return this.#change(
        server,
        { method: "PUT", path: `/v1/secrets/${path}`, body: { value, description: value } },
        { secret: value, trashed },
      );
    }
    if (kind === "version") return this.#destroyVersion(server);
    if (kind === "trash" && secret !== null)
      return this.#change(server, { method: "POST", path: `/v1/trash/${path}` }, { secret: null, trashed: secret });
    if (this.#isAged || trashed === null) return; // the sweep may be there first
    if (kind === "destroy")
      return this.#change(server, { method: "DELETE", path: `/v1/trash/${path}` }, { secret, trashed: null });
    if (secret === null)
      return this.#change(server, { method: "POST", path: `/v1/untrash/${path}` }, { secret: trashed, trashed: null });
  }

  /** Never in both places, never in neither, but as the changes left it. */
  async inspect(server: TestServer): Promise<void> {
    const found = await this.#find(server);
    const possible = this.#states.flatMap((state) => (this.#isAged ? [state, { ...state, trashed: null }] : [state]));
    expect(possible, this.#path).to.deep.include(found);
    if (found.trashed === null) this.#isAged = false;
    this.#states = [found];
  }

  age(home: string): void {
    if (this.#states.length > 1 || this.#state.trashed === null) return;
    const file = join(home, "vault", "gen-1", "trash", `${this.#path}.sealed`);
    const bytes = readFileSync(file);
    bytes.writeBigUInt64BE(bytes.readBigUInt64BE(5) - BigInt(2 * dayMs), 5);
    writeFileSync(file, bytes, { flush: true });
    this.#isAged = true;
  }

  async isSweeping(server: TestServer): Promise<boolean> {
    return this.#isAged && (await this.#find(server)).trashed !== null;
  }

  get #state(): Pair {
    return this.#states[0] ?? { secret: null, trashed: null };
  }

  async #change(server: TestServer, request: Send, after: Pair): Promise<void> {
    const before = this.#state;
    this.#states = [before, after];
    mustSucceed(await send(server, request));
    if (after.trashed !== before.trashed) this.#isAged = false;
    this.#states = [after];
  }

  async #destroyVersion(server: TestServer): Promise<void> {
    const { json } = await send(server, { path: `/v1/versions/${this.#path}` });
    const [, earlier] = (json["versions"] ?? []) as { version: number }[];
    if (earlier === undefined) return;
    const query = `?version=${earlier.version}`;
    mustSucceed(await send(server, { method: "DELETE", path: `/v1/versions/${this.#path}${query}` }));
  }

  /** A secret comes back with all its versions, of which none is damaged. */
  async #find(server: TestServer): Promise<Pair> {
    const [{ status, json }, history] = [
      await send(server, { path: `/v1/secrets/${this.#path}` }),
      await send(server, { path: `/v1/versions/${this.#path}` }),
    ];
    expect([status, history.status]).to.be.deep.oneOf([
      [200, 200],
      [404, 404],
    ]);
    expect(history.json).not.to.have.property("damaged");
    const secret = status === 200 ? String(json["value"]) : null;
    return { secret, trashed: await this.#trashed(server) };
  }

  /** A secret in the trash is listed without its value, which is the description as well. */
  async #trashed(server: TestServer): Promise<string | null> {
    const { entries } = mustSucceed(await send(server, { path: `/v1/trash?prefix=${this.#path}` })) as {
      entries: Json[];
    };
    const { metadata } = (entries[0] ?? {}) as { metadata?: { description?: string } };
    return entries[0] === undefined ? null : String(metadata?.description);
  }
}

class KeyLane implements Lane {
  readonly #name: string;
  #states: readonly Key[] = [{ versions: 0, ciphertexts: [] }];

  constructor(name: string) {
    this.#name = name;
  }

  async step(server: TestServer, random: Random): Promise<void> {
    const { versions, ciphertexts } = this.#state;
    if (versions === 0) {
      await this.#change(server, { method: "POST", path: this.#at }, { versions: 1, ciphertexts: [] });
      return void mustSucceed(await send(server, this.#configuration));
    }
    if (random.chance(0.3)) {
      mustSucceed(await send(server, this.#configuration)); // the kill may have come before it
      return this.#change(server, { method: "DELETE", path: this.#at }, { versions: 0, ciphertexts: [] });
    }
    const rotation = { method: "POST", path: `${this.#at}/rotate` } as const;
    if (random.chance(0.5)) return this.#change(server, rotation, { versions: versions + 1, ciphertexts });
    const request = { method: "POST", path: `/v1/transit/encrypt/${this.#name}`, body: { plaintext } } as const;
    const { ciphertext } = mustSucceed(await send(server, request));
    this.#states = [{ versions, ciphertexts: [...ciphertexts, String(ciphertext)].slice(-8) }];
  }

  /** A key is there whole, with all its versions, or it is not. */
  async inspect(server: TestServer): Promise<void> {
    const { status, json } = await send(server, { path: this.#at });
    const versions = status === 404 ? 0 : Number(json["latestVersion"]);
    const state = this.#states.find((each) => each.versions === versions);
    expect(
      this.#states.map((each) => each.versions),
      this.#name,
    ).to.include(versions);
    this.#states = [state ?? { versions, ciphertexts: [] }];
    for (const ciphertext of this.#state.ciphertexts) {
      const request = { method: "POST", path: `/v1/transit/decrypt/${this.#name}`, body: { ciphertext } } as const;
      expect(mustSucceed(await send(server, request))["plaintext"]).to.equal(plaintext);
    }
  }

  get #at(): string {
    return `/v1/transit/keys/${this.#name}`;
  }

  get #configuration(): Send {
    return { method: "POST", path: `${this.#at}/config`, body: { deletionAllowed: true } };
  }

  get #state(): Key {
    return this.#states[0] ?? { versions: 0, ciphertexts: [] };
  }

  async #change(server: TestServer, request: Send, after: Key): Promise<void> {
    this.#states = [this.#state, after];
    mustSucceed(await send(server, request));
    this.#states = [after];
  }
}
