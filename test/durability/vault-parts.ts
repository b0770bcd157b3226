/** Parts of a vault's model: what one changes, and what a vault in one of its states shows. */
import type { Json, Send } from "../../tools/rig/test-client.js";
import { secretTarget } from "../../tools/rig/test-client.js";
import { changing, creating, deleting, rotating } from "../support/key-requests.js";
import type { Random } from "../support/random.js";
import { type Change, canonical, type Outcome, type Part } from "./lane.js";

export type Table<T> = Readonly<Record<string, T>>;

/** The vault as a client sees it. `trash`: descriptions. `opens`: texts that unlock it, of those that were tried. */
export type Found = {
  readonly secrets: Table<Secret>;
  readonly trash: Table<string>;
  readonly transit: Table<number>;
  readonly tokens: Table<string>;
  readonly slots: readonly string[];
  readonly opens: ReadonlySet<string>;
};

export const nothingFound: Found = { secrets: {}, trash: {}, transit: {}, tokens: {}, slots: [], opens: new Set() };

export type VaultPart<S> = Part<S, Found>;

function without<T>(table: Table<T>, name: string): Table<T> {
  return Object.fromEntries(Object.entries(table).filter(([key]) => key !== name));
}

function pickName(table: Table<unknown>, random: Random): string | null {
  const [first, ...others] = Object.keys(table);
  return first === undefined ? null : random.pick([first, ...others]);
}

/** Returns the part of a table whose names are in this part of the vault. */
function filtered<T>(table: Table<T>, mark: string): Table<T> {
  return Object.fromEntries(Object.entries(table).filter(([name]) => name.includes(mark)));
}

/** Outcomes of a change that succeeds or is refused by the state alone. */
function plainly<S>(request: Send, after: (state: S) => S | number): Change<S> {
  return {
    request,
    outcomes: (state) => {
      const next = after(state);
      return [typeof next === "number" ? { status: next, state } : { status: 200, state: next }];
    },
  };
}

export type Secret = { readonly text: string; readonly description: string; readonly hosts: readonly string[] };

/** `isAged`: so old that the sweep destroys it. */
type Trashed = { readonly secret: Secret; readonly isAged: boolean };

export type Secrets = { readonly secrets: Table<Secret>; readonly trash: Table<Trashed> };

export type SecretsOptions = {
  /** Number of paths. */
  readonly paths: number;
  /** Most characters of a value. */
  readonly longest: number;
  /** Kinds of changes, the frequent ones more than once. */
  readonly kinds: readonly [SecretsKind, ...SecretsKind[]];
};

export type SecretsKind = keyof typeof secretsKinds;

/** Paths of a writer, and values that no other put has. */
type Writer = {
  readonly path: (random: Random) => string;
  readonly text: (path: string, random: Random, most?: number) => string;
};

type SecretsChoice = (state: Secrets, writer: Writer, random: Random) => Change<Secrets> | null;

const secretsKinds = {
  put: (_, writer, random) => {
    const path = writer.path(random);
    const { body, after } = makePut(path, writer.text(path, random));
    return plainly({ method: "PUT", path: secretTarget(path), body }, after);
  },
  delete: (state, writer, random) => {
    const path = random.chance(0.7) ? (pickName(state.secrets, random) ?? writer.path(random)) : writer.path(random);
    return plainly({ method: "DELETE", path: secretTarget(path) }, deletion(path));
  },
  batch: (state, writer, random) => {
    const operations = batchOperations(state, writer, random);
    const body = { operations: operations.map(({ operation }) => operation) };
    return plainly({ method: "POST", path: "/v1/batch", body }, (before) => {
      let current = before;
      for (const { after } of operations) {
        const next = after(current);
        if (typeof next === "number") return next;
        current = next;
      }
      return current;
    });
  },
  description: (state, _, random) => {
    const path = pickName(state.secrets, random);
    const description = `p${random.below(1e6)}`;
    const change = (secret: Secret): Secret => ({ ...secret, description });
    return path === null
      ? null
      : plainly({ method: "PATCH", path: target("metadata", path), body: { description } }, revision(path, change));
  },
  bind: (state, _, random) => {
    const path = pickName(state.secrets, random);
    if (path === null) return null;
    const host = `h${(state.secrets[path]?.hosts.length ?? 0) % 60}.example.com`; // a new one: the same again would change nothing
    const change = (secret: Secret): Secret => ({
      ...secret,
      hosts: [...secret.hosts.filter((one) => one !== host), host].sort(),
    });
    return plainly({ method: "PUT", path: target("uses", path), body: { host } }, revision(path, change));
  },
  version: (state, _, random) => {
    const path = pickName(state.secrets, random);
    if (path === null) return null;
    const request: Send = { method: "DELETE", path: `${target("versions", path)}?version=1` };
    return {
      request,
      outcomes: (before) => [
        { status: 200, state: before },
        { status: 400, state: before }, // the newest one
        { status: 404, state: before },
      ],
    };
  },
  trash: (state, _, random) => {
    const path = pickName(state.secrets, random);
    if (path === null) return null;
    return plainly({ method: "POST", path: target("trash", path), body: "" }, ({ secrets, trash }) => {
      const secret = secrets[path];
      if (secret === undefined) return 404;
      return { secrets: without(secrets, path), trash: { ...trash, [path]: { secret, isAged: false } } };
    });
  },
  untrash: (state, _, random) => {
    const path = pickName(state.trash, random);
    if (path === null) return null;
    return plainly({ method: "POST", path: target("untrash", path), body: "" }, ({ secrets, trash }) => {
      const trashed = trash[path];
      if (trashed === undefined) return 404;
      if (secrets[path] !== undefined) return 409;
      return { secrets: { ...secrets, [path]: trashed.secret }, trash: without(trash, path) };
    });
  },
  destroy: (state, _, random) => {
    const path = pickName(state.trash, random);
    if (path === null) return null;
    return plainly({ method: "DELETE", path: target("trash", path) }, ({ secrets, trash }) =>
      trash[path] === undefined ? 404 : { secrets, trash: without(trash, path) },
    );
  },
} satisfies Table<SecretsChoice>;

function target(kind: "metadata" | "uses" | "versions" | "trash" | "untrash", path: string): string {
  return `/v1/${kind}/${encodeURIComponent(path)}`;
}

type After = (state: Secrets) => Secrets | number;

/** Metadata and value are sealed apart, so each names its put. */
function makePut(path: string, text: string): { readonly body: object; readonly after: After } {
  const description = text.slice(0, text.lastIndexOf(" "));
  const after: After = ({ secrets, trash }) => {
    const hosts = secrets[path]?.hosts ?? [];
    return { secrets: { ...secrets, [path]: { text, description, hosts } }, trash };
  };
  return { body: { value: text, description }, after };
}

function deletion(path: string): After {
  return ({ secrets, trash }) => (secrets[path] === undefined ? 404 : { secrets: without(secrets, path), trash });
}

function revision(path: string, change: (secret: Secret) => Secret): After {
  return ({ secrets, trash }) => {
    const secret = secrets[path];
    return secret === undefined ? 404 : { secrets: { ...secrets, [path]: change(secret) }, trash };
  };
}

type Operation = { readonly operation: object; readonly after: After };

/** Puts, deletes, moves and copies of one batch, each path in one of them. */
function batchOperations(state: Secrets, writer: Writer, random: Random): Operation[] {
  const paths = [...new Set(Array.from({ length: 2 + random.below(60) }, () => writer.path(random)))];
  const operations: Operation[] = [];
  for (let path = paths.pop(); path !== undefined; path = paths.pop()) {
    const isThere = state.secrets[path] !== undefined;
    const to = isThere && random.chance(0.3) ? paths.pop() : undefined;
    if (to !== undefined) operations.push(transfer(path, to, random.chance(0.3)));
    else if (isThere && random.chance(0.35)) operations.push({ operation: { delete: path }, after: deletion(path) });
    else {
      const { body, after } = makePut(path, writer.text(path, random, 5_000));
      operations.push({ operation: { put: path, ...body }, after });
    }
  }
  return operations;
}

/** A copy is not bound to hosts. */
function transfer(path: string, to: string, isCopy: boolean): Operation {
  const after: After = ({ secrets, trash }) => {
    const secret = secrets[path];
    if (secret === undefined) return 404;
    const moved = isCopy ? { ...secrets, [to]: { ...secret, hosts: [] } } : { ...without(secrets, path), [to]: secret };
    return { secrets: moved, trash };
  };
  return { operation: isCopy ? { copy: path, to } : { move: path, to }, after };
}

/** In lasting directories, alone in temporary directories, below another secret, and with names that a file may not have. */
function numberedPath(mark: string, number: number): string {
  const name = `${mark}${number}`;
  switch (number % 6) {
    case 0:
      return name;
    case 1:
      return `${mark}${number - 1}/under-a-secret`;
    case 2:
      return `shared/${number % 4}/${name}`;
    case 3:
      return `alone/${name}/deep/down/here`;
    case 4:
      return `con/${number % 4 === 0 ? "É" : "é"}%2f ${name}.sealed`;
    default:
      return `shared/${number % 4}/few/${number % 2}/${name}`;
  }
}

let texts = 0;

/** Secrets of one writer, in directories that it shares with the others. */
export function secretsPart(writer: number, { paths, longest, kinds }: SecretsOptions): VaultPart<Secrets> {
  const mark = `w${writer}-`;
  const own: Writer = {
    path: (random) => numberedPath(mark, random.below(paths)),
    text: (path, random, most = longest) => {
      const length = Math.min(most, random.pick([0, 10, 100, 100, 1_000, 5_000, 20_000, 200_000]));
      const filler = String.fromCharCode(97 + random.below(26)).repeat(random.below(length + 1));
      return `${texts++} ${path} ${filler}`;
    },
  };
  const describe = ({ secrets, trash }: Found) => ({ secrets: filtered(secrets, mark), trash: filtered(trash, mark) });
  return {
    name: `writer ${writer}`,
    empty: { secrets: {}, trash: {} },
    choose: (state, random) => {
      const choice: SecretsChoice = secretsKinds[random.pick(kinds)];
      return choice(state, own, random);
    },
    matches: ({ secrets, trash }, found) => {
      const described = Object.entries(trash).map(([path, { secret }]) => [path, secret.description]);
      return canonical({ secrets, trash: Object.fromEntries(described) }) === canonical(describe(found));
    },
    describe,
    drifts: ({ secrets, trash }) =>
      Object.entries(trash).flatMap(([path, { isAged }]) => (isAged ? [{ secrets, trash: without(trash, path) }] : [])),
  };
}

/** `ciphertexts`: the last that the key has encrypted. */
export type TransitKey = {
  readonly versions: number;
  readonly isDeletable: boolean;
  readonly ciphertexts: readonly string[];
};

const plaintext = Buffer.from("kept").toString("base64");

/** Transit keys of one lane. */
export function transitPart(lane: number): VaultPart<Table<TransitKey>> {
  const mark = `t${lane}-`;
  const keyed = (name: string, after: (key: TransitKey, response: Json | null) => TransitKey) =>
    ((keys, response) => {
      const key = keys[name];
      return [
        key === undefined
          ? { status: 404, state: keys }
          : { status: 200, state: { ...keys, [name]: after(key, response) } },
      ];
    }) satisfies Change<Table<TransitKey>>["outcomes"];
  const describe = ({ transit }: Found) => filtered(transit, mark);
  return {
    name: `transit keys ${lane}`,
    empty: {},
    choose: (keys, random) => {
      const name = `dir${random.below(2)}/${mark}${random.below(3)}`;
      const path = `/v1/transit/keys/${name}`;
      if (keys[name] === undefined)
        return plainly({ method: "POST", path, body: { type: "aes256-gcm96" } }, (before) =>
          before[name] === undefined
            ? { ...before, [name]: { versions: 1, isDeletable: false, ciphertexts: [] } }
            : 409,
        );
      switch (random.pick(["rotate", "rotate", "encrypt", "encrypt", "config", "delete"])) {
        case "rotate":
          return {
            request: { method: "POST", path: `${path}/rotate`, body: "" },
            outcomes: keyed(name, (key) => ({ ...key, versions: key.versions + 1 })),
          };
        case "encrypt":
          return {
            request: { method: "POST", path: `/v1/transit/encrypt/${name}`, body: { plaintext } },
            outcomes: keyed(name, (key, response) =>
              response === null
                ? key
                : { ...key, ciphertexts: [...key.ciphertexts, String(response["ciphertext"])].slice(-4) },
            ),
          };
        case "config":
          return {
            request: { method: "POST", path: `${path}/config`, body: { deletionAllowed: true } },
            outcomes: keyed(name, (key) => ({ ...key, isDeletable: true })),
          };
        default:
          return plainly({ method: "DELETE", path }, (before) => {
            const key = before[name];
            if (key === undefined) return 404;
            return key.isDeletable ? without(before, name) : 400;
          });
      }
    },
    matches: (keys, found) => {
      const versions = Object.entries(keys).map(([name, key]) => [name, key.versions]);
      return canonical(Object.fromEntries(versions)) === canonical(describe(found));
    },
    describe,
  };
}

/** Requests that must return the plaintext: what the keys of a state have encrypted. */
export function decryptions(keys: Table<TransitKey>): readonly Send[] {
  return Object.entries(keys).flatMap(([name, { ciphertexts }]) =>
    ciphertexts.map(
      (ciphertext) => ({ method: "POST", path: `/v1/transit/decrypt/${name}`, body: { ciphertext } }) as const,
    ),
  );
}

/** So many that changes of the tokens have a document of their own. */
export const manyPaths = Array.from({ length: 64 }, (_, i) => `app/${"p".repeat(200)}/${"p".repeat(90)}-${i}/`);

/** Client tokens, each with what it can do. */
export function tokensPart(): VaultPart<Table<string>> {
  return {
    name: "tokens",
    empty: {},
    choose: (_, random) => {
      const name = `t${random.below(4)}`;
      const path = `/v1/tokens/${name}`;
      const can = random.pick(["get", "put", "list"]);
      const created = { name, can: [can], ...(name === "t3" && { paths: manyPaths }) };
      switch (random.pick(["create", "rotate", "revoke"])) {
        case "create":
          return plainly({ method: "POST", path: "/v1/tokens", body: created }, (tokens) =>
            tokens[name] === undefined ? { ...tokens, [name]: can } : 409,
          );
        case "rotate":
          return plainly({ method: "POST", path, body: "" }, (tokens) => (tokens[name] === undefined ? 404 : tokens));
        default:
          return plainly({ method: "DELETE", path }, (tokens) =>
            tokens[name] === undefined ? 404 : without(tokens, name),
          );
      }
    },
    matches: (tokens, found) => canonical(tokens) === canonical(found.tokens),
    describe: ({ tokens }) => tokens,
  };
}

/** `key`: null when the response with its text did not come. */
type Slot = { readonly id: string; readonly key: string } | null;

/** Passphrase and keys. `dead`: keys that open no longer. */
export type Keys = {
  readonly passphrase: string;
  readonly slots: Table<Slot>;
  readonly dead: readonly string[];
};

/** Returns every text that may open a vault in this state, or must not. */
export function openingTexts({ passphrase, slots, dead }: Keys): readonly string[] {
  return [passphrase, ...dead, ...Object.values(slots).flatMap((slot) => slot?.key ?? [])];
}

const mostKeys = 4;

let secretTexts = 0;

/** Init of a new vault: of this part a change as any other. */
export function renewal(passphrase: string): Change<Keys> {
  return plainly<Keys>({ method: "POST", path: "/v1/init", body: { passphrase, force: true } }, () => ({
    passphrase,
    slots: {},
    dead: [],
  }));
}

export function keysPart(passphrase: string): VaultPart<Keys> {
  return {
    name: "passphrase and keys",
    empty: { passphrase, slots: {}, dead: [] },
    choose: (state, random) => {
      switch (random.pick(["passphrase", "create", "delete", "rotate"])) {
        case "create":
          return Object.keys(state.slots).length < mostKeys ? creation(state) : passphraseChange(state);
        case "delete":
          return deletionOfKey(state, random) ?? passphraseChange(state);
        case "rotate":
          return rotation(state, random);
        default:
          return passphraseChange(state);
      }
    },
    matches: ({ passphrase: text, slots, dead }, { slots: labels, opens }) =>
      opens.has(text) &&
      canonical(Object.keys(slots).sort()) === canonical(labels) &&
      Object.values(slots).every((slot) => slot === null || opens.has(slot.key)) &&
      !dead.some((key) => opens.has(key)),
    describe: ({ slots, opens }) => ({ slots, opens: [...opens] }),
  };
}

function passphraseChange({ passphrase }: Keys): Change<Keys> {
  const after = `passphrase ${secretTexts++}`;
  return plainly(changing(passphrase, after), (state) =>
    state.passphrase === passphrase ? { ...state, passphrase: after } : 401,
  );
}

function creation({ passphrase }: Keys): Change<Keys> {
  const label = `key ${secretTexts++}`;
  return {
    request: creating(label, passphrase),
    outcomes: (state, response) => {
      const slot = response === null ? null : { id: String(response["id"]), key: String(response["key"]) };
      return [{ status: 200, state: { ...state, slots: { ...state.slots, [label]: slot } } }];
    },
  };
}

function deletionOfKey({ slots }: Keys, random: Random): Change<Keys> | null {
  const label = pickName(slots, random);
  const slot = label === null ? null : slots[label];
  if (label === null || slot === null || slot === undefined) return null;
  return plainly(deleting(slot.id), (state) => (state.slots[label] === undefined ? 404 : withoutKeys(state, [label])));
}

/** Drops one of the keys, and those whose text is not known. While another rotation runs, it is refused. */
function rotation({ passphrase, slots }: Keys, random: Random): Change<Keys> {
  const dropped = pickName(slots, random);
  const kept = Object.entries(slots).flatMap(([label, slot]) =>
    slot === null || label === dropped ? [] : [[label, slot.key] as const],
  );
  const labels = kept.map(([label]) => label);
  const outcomes = (state: Keys): readonly Outcome<Keys>[] => [
    { status: 409, state },
    {
      status: 200,
      state: withoutKeys(
        state,
        Object.keys(state.slots).filter((label) => !labels.includes(label)),
      ),
    },
  ];
  return {
    request: rotating(
      kept.map(([, key]) => key),
      passphrase,
    ),
    outcomes,
  };
}

function withoutKeys(state: Keys, labels: readonly string[]): Keys {
  const keys = labels.flatMap((label) => state.slots[label]?.key ?? []);
  let { slots } = state;
  for (const label of labels) slots = without(slots, label);
  return { ...state, slots, dead: [...state.dead, ...keys].slice(-2) };
}
