/**
 * The whole vault compared with its model, one change after the other: every response is judged, and after each change the servers
 * show what the model has, locks, restarts, forced inits and rotations included.
 */
import { expect } from "chai";
import { cleanUpMark, cleanUpTo, shared } from "../../tools/rig/clean-up.js";
import { needsPostgres } from "../../tools/rig/postgres.js";
import { startTestServer, type TestServer } from "../../tools/rig/server.js";
import { mustLock, mustRefuse, mustStatus, secretTarget, send } from "../../tools/rig/test-client.js";
import { untilRotated } from "../support/key-requests.js";
import { Random, runSeed } from "../support/random.js";
import {
  type SharedDatabase,
  sharedStoreUrl,
  startSharedDatabase,
  startSharedServers,
} from "../support/shared-servers.js";
import { allChanges, VaultModel } from "./vault-model.js";

/** 100 and 500 in the long forms. */
const runs = process.env["STRONGROOM_MODEL_RUNS"];
const steps = 45;
const faults = ["lock", "lock", "restart", "init", "swap"] as const;
const faultShare = 1 / 6;
const checkShare = 1 / 4;

/** Changes that other servers show immediately, unlike bindings. */
const sharedKinds = ["put", "put", "put", "delete", "batch", "description", "trash", "untrash", "destroy"] as const;

/** Servers of one vault, the locked ones among them, and the model of the vault. */
class Trial {
  readonly #model: VaultModel;
  readonly #servers: TestServer[];
  readonly #database: SharedDatabase | null;
  readonly #random: Random;
  readonly #locked = new Set<TestServer>();

  constructor(servers: readonly TestServer[], database: SharedDatabase | null, random: Random) {
    const kinds = database === null ? allChanges.kinds : sharedKinds;
    this.#model = new VaultModel({ ...allChanges, writers: 2, paths: 8, longest: 100, kinds });
    this.#servers = [...servers];
    this.#database = database;
    this.#random = random;
  }

  async run(): Promise<void> {
    for (const server of this.#servers.slice(0, 1)) await this.#model.begin(server);
    for (let n = 0; n < steps; n++) {
      await this.#step();
      if (n === steps - 1 || this.#random.chance(checkShare))
        for (const server of this.#servers) await this.#check(server);
    }
  }

  async #step(): Promise<void> {
    const at = this.#random.below(this.#servers.length);
    const server = this.#servers[at] ?? expect.fail("no server");
    if (this.#locked.has(server) && this.#random.chance(2 * faultShare)) {
      await this.#model.reopen(server);
      this.#locked.delete(server);
      return;
    }
    if (this.#servers.length > 1 && !this.#locked.has(server)) await this.#model.unlock(server);
    if (!this.#random.chance(faultShare)) return this.#change(server);
    switch (this.#random.pick(faults)) {
      case "lock":
        await mustLock(server);
        this.#locked.add(server);
        break;
      case "restart":
        await server.stop();
        this.#locked.delete(server);
        this.#servers[at] = await this.#restart(server.home);
        this.#locked.add(this.#servers[at]);
        break;
      case "init":
        await this.#model.reinit(server);
        this.#locked.delete(server);
        break;
      case "swap":
        if (this.#database !== null && !this.#locked.has(server)) await this.#swap(server, this.#database);
    }
  }

  async #change(server: TestServer): Promise<void> {
    const isLocked = this.#locked.has(server);
    await this.#model.step(server, isLocked, this.#random);
    // A rotation changes the header once more when it ends, and locks the other server then, at any moment of its requests.
    if (this.#servers.length > 1 && !isLocked) await untilRotated(server);
  }

  #restart(home: string): Promise<TestServer> {
    return startTestServer({ home, ...(this.#database && { store: sharedStoreUrl(this.#database) }) });
  }

  async #check(server: TestServer): Promise<void> {
    const isLocked = this.#locked.has(server);
    if (this.#servers.length > 1 && !isLocked) await this.#model.unlock(server);
    expect((await mustStatus(server))["locked"]).to.equal(isLocked);
    if (isLocked) for (const path of this.#model.paths) await mustRefuseGet(server, path, 403, "VAULT_LOCKED");
    else await this.#model.check(server);
  }

  /** Swaps what the database has at two paths, as one who can write it may. */
  async #swap(server: TestServer, { cluster, name }: SharedDatabase): Promise<void> {
    const [one, other] = this.#model.paths;
    if (one === undefined || other === undefined) return;
    const swapped = (path: string) =>
      `(SELECT blob FROM strongroom.secret o WHERE o.vault = s.vault AND o.path = '${path}')`;
    const swap = `UPDATE strongroom.secret s SET blob = CASE path WHEN '${one}' THEN ${swapped(other)} ELSE ${swapped(one)} END
      WHERE vault = (SELECT vault FROM strongroom.current) AND path IN ('${one}', '${other}')`;
    await untilRotated(server);
    await this.#model.unlock(server);
    await cluster.sql(name, swap);
    for (const path of [one, other]) await mustRefuseGet(server, path, 500, "INTEGRITY");
    await cluster.sql(name, swap);
  }
}

async function mustRefuseGet(server: TestServer, path: string, status: number, code: string): Promise<void> {
  mustRefuse(await send(server, { path: secretTarget(path) }), status, code);
}

async function mustAgree(count: number, database: SharedDatabase | null): Promise<void> {
  for (let n = 0; n < count; n++) {
    const mark = cleanUpMark();
    const servers = database === null ? [await startTestServer()] : await startSharedServers(database, 2);
    try {
      await new Trial(servers, database, new Random(runSeed + n)).run();
    } catch (cause) {
      throw new Error(`STRONGROOM_SEED=${runSeed + n}: ${String(cause)}`, { cause });
    }
    await cleanUpTo(mark);
  }
}

describe("the vault beside its model", function () {
  this.timeout(0);

  it("a server agrees with the model over random sequences of changes, locks, restarts and inits", () =>
    mustAgree(Number(runs ?? 2), null));
});

describe("the vault in a database beside its model", function () {
  this.timeout(0);
  before(function () {
    needsPostgres(this);
  });
  const database = shared(startSharedDatabase);

  it("two servers of one vault agree with the model over random sequences of changes, locks, restarts, inits and swapped rows", () =>
    mustAgree(Number(runs ?? 1), database()));
});
