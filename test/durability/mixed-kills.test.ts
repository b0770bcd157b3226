/**
 * kill -9 under a mix of all kinds of changes: secrets, descriptions, bindings, trash, transit keys, client tokens, keys of the
 * vault, its passphrase and its master key. After each restart the vault is as a model says: with everything that was
 * acknowledged, and with or without the one change that was not.
 */
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { passphrase, startTestServer, type TestServer } from "../../tools/rig/server.js";
import { closeConnections, type Json, mustInit, mustSucceed, type Send, send } from "../../tools/rig/test-client.js";
import { rotating, unlockWith } from "../support/key-requests.js";
import { Random, runSeed } from "../support/random.js";

/** Short in the normal suite; 200 in the long form. */
const kills = Number(process.env["STRONGROOM_MIXED_KILLS"] ?? 1);
const changesInLife = 12;

type Secret = { readonly value: string; readonly description: string; readonly hosts: readonly string[] };
type Table<T> = Readonly<Record<string, T>>;

/** The expected vault. `slots`: the text of each key, by label. */
type Model = {
  readonly passphrase: string;
  readonly secrets: Table<Secret>;
  readonly trash: Table<Secret>;
  readonly transit: Table<number>;
  readonly tokens: Table<string>;
  readonly slots: Table<string>;
};

/** `next`: the model once it is acknowledged, with the response. */
type Change = { readonly request: Send; readonly next: (response: Json) => Model };

/** Returns null where the model has nothing to change so. */
type Kind = (model: Model, random: Random) => Change | null;

const empty: Model = { passphrase, secrets: {}, trash: {}, transit: {}, tokens: {}, slots: {} };
const places = ["a", "b/c", "b/d", "e"] as const;
const names = ["one", "two"] as const;

function without<T>(table: Table<T>, name: string): Table<T> {
  return Object.fromEntries(Object.entries(table).filter(([key]) => key !== name));
}

function pickOf(table: Table<unknown>, random: Random): string | null {
  const [first, ...others] = Object.keys(table);
  return first === undefined ? null : random.pick([first, ...others]);
}

/** A change of one secret that is there. */
function ofSecret(make: (model: Model, path: string, secret: Secret, random: Random) => Change): Kind {
  return (model, random) => {
    const path = pickOf(model.secrets, random);
    const secret = path === null ? undefined : model.secrets[path];
    return path === null || secret === undefined ? null : make(model, path, secret, random);
  };
}

/** A change of a member that is there, which the request names. */
function ofMember<K extends "tokens" | "transit" | "trash">(
  table: K,
  make: (model: Model, name: string, random: Random) => Change | null,
): Kind {
  return (model, random) => {
    const name = pickOf(model[table], random);
    return name === null ? null : make(model, name, random);
  };
}

const kinds: Readonly<Record<string, Kind>> = {
  put: (model, random) => {
    const [path, value, description] = [random.pick(places), `v${random.below(1e6)}`, `d${random.below(1e6)}`];
    const hosts = model.secrets[path]?.hosts ?? [];
    const request = { method: "PUT", path: `/v1/secrets/${path}`, body: { value, description } };
    return {
      request,
      next: () => ({ ...model, secrets: { ...model.secrets, [path]: { value, description, hosts } } }),
    };
  },
  description: ofSecret((model, path, secret, random) => {
    const description = `p${random.below(1e6)}`;
    const request = { method: "PATCH", path: `/v1/metadata/${path}`, body: { description } };
    return { request, next: () => ({ ...model, secrets: { ...model.secrets, [path]: { ...secret, description } } }) };
  }),
  delete: ofSecret((model, path) => {
    const request = { method: "DELETE", path: `/v1/secrets/${path}` };
    return { request, next: () => ({ ...model, secrets: without(model.secrets, path) }) };
  }),
  batch: ofSecret((model, path, secret, random) => {
    const [value, description] = [`b${random.below(1e6)}`, "of a batch"];
    const operations = [
      { move: path, to: "moved/here" },
      { put: "f", value, description },
    ];
    const rest = without(model.secrets, path);
    const hosts = model.secrets["f"]?.hosts ?? [];
    const secrets = { ...rest, "moved/here": secret, f: { value, description, hosts } };
    if (path === "moved/here" || path === "f") return kindOf("put")(model, random) as Change;
    return {
      request: { method: "POST", path: "/v1/batch", body: { operations } },
      next: () => ({ ...model, secrets }),
    };
  }),
  bind: ofSecret((model, path, secret) => {
    const host = `h${secret.hosts.length % 60}.example.com`; // a new one: the same again would change nothing
    const hosts = [...secret.hosts.filter((one) => one !== host), host].sort();
    const request = { method: "PUT", path: `/v1/uses/${path}`, body: { host } };
    return { request, next: () => ({ ...model, secrets: { ...model.secrets, [path]: { ...secret, hosts } } }) };
  }),
  trash: ofSecret((model, path, secret) => {
    const request = { method: "POST", path: `/v1/trash/${path}`, body: "" };
    const trash = { ...model.trash, [path]: secret };
    return { request, next: () => ({ ...model, secrets: without(model.secrets, path), trash }) };
  }),
  untrash: ofMember("trash", (model, path) => {
    const secret = model.trash[path];
    if (secret === undefined || model.secrets[path] !== undefined) return null;
    const request = { method: "POST", path: `/v1/untrash/${path}`, body: "" };
    const secrets = { ...model.secrets, [path]: secret };
    return { request, next: () => ({ ...model, secrets, trash: without(model.trash, path) }) };
  }),
  destroy: ofMember("trash", (model, path) => {
    const request = { method: "DELETE", path: `/v1/trash/${path}` };
    return { request, next: () => ({ ...model, trash: without(model.trash, path) }) };
  }),
  "new transit key": (model, random) => {
    const name = random.pick(names);
    if (model.transit[name] !== undefined) return null;
    const request = { method: "POST", path: `/v1/transit/keys/${name}`, body: { type: "aes256-gcm96" } };
    return { request, next: () => ({ ...model, transit: { ...model.transit, [name]: 1 } }) };
  },
  "new version of a transit key": ofMember("transit", (model, name) => {
    const request = { method: "POST", path: `/v1/transit/keys/${name}/rotate`, body: "" };
    return {
      request,
      next: () => ({ ...model, transit: { ...model.transit, [name]: (model.transit[name] ?? 0) + 1 } }),
    };
  }),
  "new token": (model, random) => {
    const [name, can] = [`t${random.below(4)}`, random.pick(["get", "put", "list"])];
    if (model.tokens[name] !== undefined) return null;
    const request = { method: "POST", path: "/v1/tokens", body: { name, can: [can] } };
    return { request, next: () => ({ ...model, tokens: { ...model.tokens, [name]: can } }) };
  },
  "rotation of a token": ofMember("tokens", (model, name) => {
    return { request: { method: "POST", path: `/v1/tokens/${name}`, body: "" }, next: () => model };
  }),
  "revocation of a token": ofMember("tokens", (model, name) => {
    const request = { method: "DELETE", path: `/v1/tokens/${name}` };
    return { request, next: () => ({ ...model, tokens: without(model.tokens, name) }) };
  }),
  "new key": (model, random) => {
    const label = `k${random.below(3)}`;
    if (model.slots[label] !== undefined) return null;
    const request = { method: "POST", path: "/v1/keys", body: { passphrase: model.passphrase, label } };
    return { request, next: ({ key }) => ({ ...model, slots: { ...model.slots, [label]: String(key) } }) };
  },
  passphrase: (model, random) => {
    const newPassphrase = `another passphrase ${random.below(1e6)}`;
    const request = { method: "POST", path: "/v1/passphrase", body: { passphrase: model.passphrase, newPassphrase } };
    return { request, next: () => ({ ...model, passphrase: newPassphrase }) };
  },
  "rotation of the master key": (model) => {
    const known = Object.fromEntries(Object.entries(model.slots).filter(([, text]) => text !== ""));
    return { request: rotating(Object.values(known), model.passphrase), next: () => ({ ...model, slots: known }) };
  },
};

function kindOf(name: string): Kind {
  const kind = kinds[name];
  if (kind === undefined) throw new Error(`no kind ${name}`);
  return kind;
}

/** Everything of the model that a client can see, but the passphrase. */
function shown({ secrets, trash, transit, tokens, slots }: Model): object {
  const described = Object.fromEntries(Object.entries(trash).map(([path, { description }]) => [path, description]));
  return { secrets, trash: described, transit, tokens, slots: Object.keys(slots).sort() };
}

type Listed = Json & { readonly path: string; readonly metadata: { readonly description?: string } };

async function look(server: TestServer): Promise<object> {
  const read = async (path: string) => mustSucceed(await send(server, { path }));
  const uses = (await read("/v1/uses"))["uses"] as readonly { readonly path: string; readonly host: string }[];
  const secrets: Record<string, Secret> = {};
  for (const { path, metadata } of (await read("/v1/secrets"))["entries"] as Listed[]) {
    const { value } = await read(`/v1/secrets/${path}`);
    const hosts = uses.flatMap((use) => (use.path === path ? [use.host] : [])).sort();
    secrets[path] = { value: String(value), description: metadata.description ?? "", hosts };
  }
  const trash = (await read("/v1/trash"))["entries"] as Listed[];
  const transit = (await read("/v1/transit/keys"))["keys"] as readonly { name: string; latestVersion: number }[];
  const tokens = (await read("/v1/tokens"))["tokens"] as readonly { name: string; can: string[] }[];
  const slots = (await read("/v1/keys"))["keys"] as readonly { kind: string; label: string }[];
  return {
    secrets,
    trash: Object.fromEntries(trash.map(({ path, metadata }) => [path, metadata.description])),
    transit: Object.fromEntries(transit.map(({ name, latestVersion }) => [name, latestVersion])),
    tokens: Object.fromEntries(tokens.map(({ name, can }) => [name, can.join()])),
    slots: slots.flatMap(({ kind, label }) => (kind === "key" ? [label] : [])).sort(),
  };
}

function changeOf(model: Model, random: Random): Change {
  const [first, ...others] = Object.values(kinds);
  for (;;) {
    const change = random.pick([first as Kind, ...others])(model, random);
    if (change !== null) return change;
  }
}

/** Makes an acknowledged change. While a rotation of the master key runs, a second one is refused. */
async function make({ request, next }: Change, model: Model, server: TestServer): Promise<Model> {
  const answer = await send(server, request);
  if (answer.status === 409 && request.path === "/v1/rotate") return model;
  return next(mustSucceed(answer));
}

async function kill(server: ServerProcess): Promise<void> {
  server.child.kill("SIGKILL");
  await server.ended;
  closeConnections(server);
}

/** Unlocks a server that was just started, and returns which of the models it holds. @throws AssertionError when it is none of them */
async function inspect<Server extends TestServer>(server: Server, models: readonly Model[]): Promise<[Server, Model]> {
  const opening: Model[] = [];
  for (const model of models) {
    if ((await send(server, unlockWith(model.passphrase))).status === 200) opening.push(model);
  }
  expect(opening, "models whose passphrase unlocks").to.not.deep.equal([]);
  const found = await look(server);
  const matching = opening.find((model) => JSON.stringify(sorted(shown(model))) === JSON.stringify(sorted(found)));
  if (matching === undefined) expect(found).to.deep.equal(shown(models[0] ?? empty));
  return [server, matching ?? empty];
}

function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.map(([key, one]) => [key, sorted(one)]);
}

/** One life of a server: acknowledged changes, then one during which it is killed. */
async function live(server: ServerProcess, before: Model, random: Random): Promise<[ServerProcess, Model]> {
  let model = before;
  for (let left = random.below(changesInLife); left > 0; left--)
    model = await make(changeOf(model, random), model, server);
  const change = changeOf(model, random);
  const answer = send(server, change.request).catch(() => null);
  await sleep(random.below(25));
  await kill(server);
  const response = await answer;
  const again = await startProcess([], { STRONGROOM_HOME: server.home });
  if (response?.status === 200) return inspect(again, [change.next(response.json)]);
  return inspect(again, [model, change.next({ key: "" })]);
}

describe("kill -9 under all kinds of changes", function () {
  this.timeout(0);

  it(`${kills} times: the vault is as the model says (seed ${runSeed})`, async () => {
    const random = new Random(runSeed);
    let server = await startProcess();
    await mustInit(server);
    let model = empty;
    for (let n = 0; n < kills; n++) [server, model] = await live(server, model, random);
  });

  it("is checked so that a vault that has lost its last change of any kind is found out", async () => {
    const random = new Random(runSeed);
    let server = await startTestServer();
    await mustInit(server);
    let model = empty;
    for (const name of ["put", "bind", "new transit key", "new token", "new key"])
      model = await mustMake(name, model, server, random);
    const lost = kills > 100 ? Object.keys(kinds) : ["description", "trash", "revocation of a token"];
    for (const name of lost.filter((one) => !/^rotation/.test(one))) {
      const change = kindOf(name)(model, random);
      if (change === null) continue;
      const copy = join(temporaryDirectory(), "vault");
      cpSync(server.vaultPath, copy, { recursive: true });
      const after = await make(change, model, server);
      await server.stop();
      rmSync(server.vaultPath, { recursive: true });
      cpSync(copy, server.vaultPath, { recursive: true });
      server = await startTestServer({ home: server.home });
      await inspect(server, [model]);
      const isFound = await inspect(server, [after]).then(
        () => false,
        () => true,
      );
      expect(isFound, name).to.equal(true);
    }
  });
});

async function mustMake(name: string, model: Model, server: TestServer, random: Random): Promise<Model> {
  const change = kindOf(name)(model, random);
  if (change === null) throw new Error(`nothing to do for ${name}`);
  return make(change, model, server);
}
