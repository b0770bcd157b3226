/** Endpoints of the transit secrets engine. Bodies are read, and results made, in the key worker. */
import type { SharedBytes, TransitUse, VaultForm } from "../../workers/protocol.js";
import { visibleRanges } from "../access/rights.js";
import { VaultError } from "../errors.js";
import { input, sharedValue } from "../http/body.js";
import { type BasicCall, endpoint, parseKeyName, type Subject, type Target, type Whole } from "../http/endpoint.js";
import { anyUse, transitFacts } from "../http/transit-facts.js";
import { parseSecretPath } from "../paths/secret-path.js";
import { namesAfter, readPage } from "./members.js";
import { data, nothing, object } from "./response.js";
import { wholeVault } from "./table.js";
import { operationInKeyName, Unsupported } from "./unsupported.js";

/** A key by its name in the vault, and what the client calls it, with what else the path says. */
type Key = { readonly key: string; readonly form: VaultForm };

const keyPath = ({ key }: Key) => key;

/** A key to manage: Vault's operations on a key are no part of its name. */
const managedKey: Subject<Key> = { read: (text, target) => managed(keyIn(text, target), false), auditPath: keyPath };
const newKey: Subject<Key> = { read: (text, target) => managed(keyIn(text, target), true), auditPath: keyPath };

/** A key to use. */
const usedKey: Subject<Key> = { read: keyIn, auditPath: keyPath };

/** The same; the hash may be the last segment of the path. */
const hashingKey: Subject<Key> = {
  read(text, target) {
    const hash = /^.+\/(sha[23]-\d{3}|sha1)$/.exec(splitMount(text, target).rest)?.[1];
    return hash === undefined ? keyIn(text, target) : keyIn(text.slice(0, -hash.length - 1), target, { hash });
  },
  auditPath: keyPath,
};

/** `…/export/TYPE/NAME`, and perhaps a version. */
const exportedKey: Subject<Key> = {
  read(text, target) {
    const { folder, rest } = splitMount(text, target);
    const [exportType = "", ...segments] = rest.split("/");
    const last = segments.at(-1) ?? "";
    const version = segments.length > 1 && /^(?:latest|v?\d{1,9})$/.test(last) ? last : "";
    const name = version === "" ? segments : segments.slice(0, -1);
    return keyIn(folder + name.join("/"), target, { exportType, version });
  },
  auditPath: keyPath,
};

/** `…/datakey/plaintext/NAME`, or `wrapped`. */
const wrappingKey: Subject<Key> = {
  read(text, target) {
    const { folder, rest } = splitMount(text, target);
    const [, kind, name] = /^(plaintext|wrapped)\/(.+)$/.exec(rest) ?? [];
    if (name === undefined) throw new VaultError("BAD_REQUEST", "Invalid path, must be 'plaintext' or 'wrapped'");
    return keyIn(folder + name, target, { plaintext: String(kind === "plaintext") });
  },
  auditPath: keyPath,
};

/** The folder of a mount's keys. */
const keyFolder: Subject<{ readonly folder: string }> = {
  read: (text, target) => ({ folder: isWhole(target) ? "" : `${parseSecretPath(text.replace(/\/$/, ""))}/` }),
  auditPath: () => null,
};

/** Segments after the operation in a path without a key: a source, a number of bytes, an algorithm. */
const rest: Subject<{ readonly rest: string }> = {
  read: (text, target) => ({ rest: splitMount(text, target).rest }),
  auditPath: () => null,
};

/** Returns the row of a use of a key. */
function useRow(path: VaultUse, subject: Subject<Key>) {
  const operation = path === "datakey" ? "dataKey" : path;
  const { scope, guard, audit } = transitFacts[operation];
  // biome-ignore format: what is decided for an endpoint stands in lines that can be compared
  return endpoint({
    operation, at: `POST /v1/*/${path}/:name`, scope, guard, audit,
    subject, body: input, conditional: false, reads: true,
    handle: (call) => use(call, path),
  });
}

/** Returns a row of an operation without a key. */
// biome-ignore format: what is decided for an endpoint stands in lines that can be compared
const keylessRow = (operation: "random" | "hash", path: string, handle: (call: Rest) => Promise<Whole>) => endpoint({
  operation, at: `POST /v1/*/${path}`, scope: anyUse, guard: "unlocked", audit: null,
  subject: rest, body: sharedValue, conditional: false, reads: true, handle,
});

// biome-ignore format: what is decided for an endpoint stands in lines that can be compared
export const transitRows = [
  endpoint({
    operation: "listTransitKeys", at: "LIST /v1/*/keys", scope: anyUse, guard: "unlocked", audit: null,
    subject: keyFolder, body: null, conditional: false, query: readPage, reads: true,
    async handle({ vault, folder, query: page, caller, recorded }) {
      const names = await vault.transit.names(folder, visibleRanges(caller).within);
      const keys = namesAfter(page, names.map((name) => name.slice(folder.length)));
      recorded.count = keys.length;
      if (keys.length === 0) throw new VaultError("NOT_FOUND", "there are no keys here");
      return object({ keys });
    },
  }),
  endpoint({
    operation: "createTransitKey", at: "POST /v1/*/keys/:name", ...transitFacts.createTransitKey,
    subject: newKey, body: sharedValue, conditional: false, reads: true,
    handle: create,
  }),
  endpoint({
    operation: "showTransitKey", at: "GET /v1/*/keys/:name", ...transitFacts.showTransitKey,
    subject: managedKey, body: null, conditional: false, reads: true,
    handle: async ({ vault, key, form }) => data(await vault.transit.show(key, form)),
  }),
  endpoint({
    operation: "deleteTransitKey", at: "DELETE /v1/*/keys/:name", ...transitFacts.deleteTransitKey,
    subject: managedKey, body: null, conditional: false, reads: false,
    async handle({ vault, key, form, permit }) {
      const problem = `error deleting policy ${form.name}: could not delete key; not found`;
      await orMissing(vault.transit.remove(key, permit, form), problem);
      return nothing;
    },
  }),
  endpoint({
    operation: "rotateTransitKey", at: "POST /v1/*/keys/:name/rotate", ...transitFacts.rotateTransitKey,
    subject: managedKey, body: sharedValue, conditional: false, reads: false,
    handle: async ({ vault, key, form, body, permit }) =>
      data(await orMissing(vault.transit.change("rotate", key, body, permit, form), "key not found")),
  }),
  endpoint({
    operation: "configureTransitKey", at: "POST /v1/*/keys/:name/config", ...transitFacts.configureTransitKey,
    subject: managedKey, body: sharedValue, conditional: false, reads: false,
    async handle({ vault, key, form, body, permit }) {
      const problem = `no existing key named ${form.name} could be found`;
      return data(await orMissing(vault.transit.change("config", key, body, permit, form), problem));
    },
  }),
  endpoint({
    operation: "exportTransitKey", at: "GET /v1/*/export/:name", ...transitFacts.exportTransitKey,
    subject: exportedKey, body: null, conditional: false, reads: true,
    handle: async ({ vault, key, form }) => data(await vault.transit.export(key, form)),
  }),
  useRow("encrypt", usedKey),
  useRow("decrypt", usedKey),
  useRow("rewrap", usedKey),
  useRow("sign", hashingKey),
  useRow("verify", hashingKey),
  useRow("hmac", hashingKey),
  useRow("datakey", wrappingKey),
  keylessRow("random", "random", random),
  keylessRow("random", "random/:bytes", random),
  keylessRow("hash", "hash", hashed),
  keylessRow("hash", "hash/:algorithm", hashed),
];

type Used = BasicCall & Key & { readonly body: SharedBytes };

/** A key that exists stays as it is. */
async function create({ vault: { transit }, key, form, body, permit }: Used): Promise<Whole> {
  try {
    return { ...data(await transit.create(key, body, permit, form)), isDone: true };
  } catch (error) {
    if (!(error instanceof VaultError) || error.code !== "ALREADY_EXISTS") throw error;
    return data(await transit.show(key, form), 200, [`key ${form.name} already existed`]);
  }
}

type VaultUse = Exclude<TransitUse, "unwrap">;

const missingKeys: Readonly<Record<VaultUse, string>> = {
  encrypt: "encryption key not found",
  decrypt: "encryption key not found",
  rewrap: "encryption key not found",
  datakey: "encryption key not found",
  hmac: "encryption key not found",
  sign: "signing key not found",
  verify: "signature verification key not found",
};

/** Encrypts, signs and so on: one input, or a batch of them. */
async function use({ vault, key: name, form, body }: Used, use: VaultUse): Promise<Whole> {
  const { response, status } = await orMissing(vault.transit.useAs({ use, name, body, form }), missingKeys[use]);
  return data(response, status);
}

type Rest = BasicCall & { readonly rest: string; readonly body: SharedBytes };

/** `…/random`, and perhaps a source, and the number of bytes. */
async function random({ vault, rest: text, body }: Rest): Promise<Whole> {
  const [, bytes] = /^(?:(?:platform|seal|all)(?:\/|$))?(\d*)$/.exec(text) ?? [];
  if (bytes === undefined) throw new VaultError("BAD_REQUEST", "the source must be platform, seal or all");
  return data(await vault.transit.random(body, { name: "", given: bytes === "" ? {} : { bytes } }));
}

/** `…/hash`, and perhaps the algorithm. */
async function hashed({ vault, rest: hash, body }: Rest): Promise<Whole> {
  return data(await vault.transit.hash(body, { name: "", given: hash === "" ? {} : { hash } }));
}

/** @throws VaultError BAD_REQUEST */
function keyIn(parameter: string, target: Target, given: VaultForm["given"] = {}): Key {
  const key = parseKeyName(parameter);
  return { key, form: { name: isWhole(target) ? key : key.slice(key.indexOf("/") + 1), given } };
}

/** @throws Unsupported */
function managed(key: Key, isNew: boolean): Key {
  const problem = operationInKeyName(key.form.name, isNew);
  if (problem === null) return key;
  throw new Unsupported(`unsupported path: ${problem}`);
}

/** Returns the mount's folder, "" or with a slash at the end, and what is behind it in the raw text of a parameter. */
function splitMount(parameter: string, target: Target): { readonly folder: string; readonly rest: string } {
  const end = isWhole(target) ? 0 : parameter.indexOf("/") + 1;
  return { folder: parameter.slice(0, end), rest: parameter.slice(end) };
}

function isWhole({ path }: Target): boolean {
  return path.startsWith(`/v1/${wholeVault}/`);
}

/** Vault's status for a missing key is 400 wherever something would be done with it. */
async function orMissing<T>(work: Promise<T>, message: string): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof VaultError) || error.code !== "NOT_FOUND") throw error;
    throw new VaultError("BAD_REQUEST", message);
  }
}
