/** Endpoints of the KV secrets engine, version 2. */
import type { Bytes, SharedBytes, VersionChange } from "../../workers/protocol.js";
import type { Caller } from "../access/credentials.js";
import { seesMetadata, visibleRanges } from "../access/rights.js";
import { change, read } from "../audit/record.js";
import { VaultError } from "../errors.js";
import { fields, sharedValue } from "../http/body.js";
import { type BasicCall, endpoint, none, parsed, type Subject, secret, type Whole } from "../http/endpoint.js";
import { compareUtf8, percentDecode } from "../paths/secret-path.js";
import { unconditional } from "../vault/conditions.js";
import type { VaultSecrets } from "../vault/secrets.js";
import { namesAfter, numberIn, type Page, parseBodyMembers, readPage } from "./members.js";
import { data, nothing, object } from "./response.js";

/** A folder, whether its name ends in a slash or not: the prefix of the paths in it. It is recorded as a list's prefix. */
const folder: Subject<{ readonly folder: string }> = {
  read: (parameter) => ({ folder: readFolder(parameter) }),
  auditPath: () => null,
};

// biome-ignore format: what is decided for an endpoint stands in lines that can be compared
export const kvRows = [
  endpoint({
    operation: "readSecret", at: "GET /v1/*/data/:path", scope: "get", guard: "unlocked", audit: read("get"),
    subject: secret, body: null, conditional: false, query: readVersion, reads: true,
    async handle({ vault: { secrets }, path, query: version, recorded }) {
      recorded.version = version;
      return version === null ? showCurrent(secrets, path) : show(secrets, path, version);
    },
  }),
  endpoint({
    operation: "writeSecret", at: "POST /v1/*/data/:path", scope: "put", guard: "unlocked", audit: change("put"),
    subject: secret, body: sharedValue, conditional: false, reads: false,
    handle: (call) => write(call, false),
  }),
  endpoint({
    operation: "patchSecret", at: "PATCH /v1/*/data/:path", scope: "put", guard: "unlocked", audit: change("put"),
    subject: secret, body: sharedValue, conditional: false, reads: false,
    handle: (call) => write(call, true),
  }),
  endpoint({
    operation: "deleteSecret", at: "DELETE /v1/*/data/:path", scope: "delete", guard: "unlocked", audit: change("delete"),
    subject: secret, body: null, conditional: false, reads: false,
    async handle({ vault, path, permit }) {
      const changing = vault.secrets.changeVersions(path, "current", "delete", { permit, mayDestroyCurrent: true });
      await changing.catch(ignoreMissing);
      return nothing;
    },
  }),
  endpoint({
    operation: "readSubkeys", at: "GET /v1/*/subkeys/:path", scope: "get", guard: "unlocked", audit: read("get"),
    subject: secret, body: null, conditional: false, query: readDepth, reads: true,
    async handle({ vault, path, query: { version, depth }, recorded }) {
      recorded.version = version;
      return show(vault.secrets, path, version, depth);
    },
  }),
  endpoint({
    operation: "deleteVersions", at: "POST /v1/*/delete/:path", scope: "delete", guard: "unlocked", audit: change("delete"),
    subject: secret, body: sharedValue, conditional: false, reads: false,
    handle: (call) => changeVersions(call, "delete"),
  }),
  endpoint({
    operation: "undeleteVersions", at: "POST /v1/*/undelete/:path", scope: "put", guard: "unlocked", audit: change("undelete"),
    subject: secret, body: sharedValue, conditional: false, reads: false,
    handle: (call) => changeVersions(call, "undelete"),
  }),
  endpoint({
    operation: "destroyVersions", at: "POST /v1/*/destroy/:path", scope: "delete", guard: "unlocked", audit: change("destroy"),
    subject: secret, body: sharedValue, conditional: false, reads: false,
    handle: (call) => changeVersions(call, "destroy"),
  }),
  endpoint({
    operation: "readMetadata", at: "GET /v1/*/metadata/:path", scope: "list", guard: "unlocked", audit: read("versions"),
    subject: secret, body: null, conditional: false, reads: true,
    async handle({ vault, path }) {
      return data((await vault.secrets.space.askAbout(path, ({ blob }) => ({ op: "kvMetadata", path, blob }))).response);
    },
  }),
  endpoint({
    operation: "writeMetadata", at: "POST /v1/*/metadata/:path", scope: "put", guard: "unlocked", audit: change("metadata"),
    subject: secret, body: sharedValue, conditional: false, reads: false,
    handle: (call) => configure(call, false),
  }),
  endpoint({
    operation: "patchMetadata", at: "PATCH /v1/*/metadata/:path", scope: "put", guard: "unlocked", audit: change("metadata"),
    subject: secret, body: sharedValue, conditional: false, reads: false,
    handle: (call) => configure(call, true),
  }),
  endpoint({
    operation: "deleteMetadata", at: "DELETE /v1/*/metadata/:path", scope: "delete", guard: "unlocked", audit: change("trash"),
    subject: secret, body: null, conditional: false, reads: false,
    async handle({ vault, path, permit }) {
      await vault.trash.move(path, undefined, permit).catch(ignoreMissing);
      return nothing;
    },
  }),
  endpoint({
    operation: "readConfig", at: "GET /v1/*/config", scope: "some", guard: "none", audit: null,
    subject: none, body: null, conditional: false, reads: true,
    handle: () => object({ cas_required: false, delete_version_after: "0s", max_versions: 0 }),
  }),
  endpoint({
    operation: "writeConfig", at: "POST /v1/*/config", scope: "some", guard: "none", audit: null,
    subject: none, body: fields(), conditional: false, reads: false,
    handle({ body }) {
      parseBodyMembers(body, "writeConfig"); // refuses a setting of a mount; a request for none changes nothing
      return nothing;
    },
  }),
  endpoint({
    operation: "listKeys", at: "LIST /v1/*/metadata", scope: "list", guard: "unlocked", audit: read("list"),
    subject: folder, body: null, conditional: false, query: readPage, reads: true,
    handle: listKeys,
  }),
  endpoint({
    operation: "listKeys", at: "LIST /v1/*/metadata/:path", scope: "list", guard: "unlocked", audit: read("list"),
    subject: folder, body: null, conditional: false, query: readPage, reads: true,
    handle: listKeys,
  }),
];

/** Returns null for the newest. @throws VaultError BAD_REQUEST */
function readVersion(query: string): number | null {
  const version = numberIn(query, "version");
  return version === 0 ? null : version;
}

/** `depth`: how far down the keys of a value are shown; 0 is all. @throws VaultError BAD_REQUEST */
function readDepth(query: string): { readonly version: number | null; readonly depth: number } {
  return { version: readVersion(query), depth: numberIn(query, "depth") };
}

async function showCurrent(secrets: VaultSecrets, path: string): Promise<Whole> {
  try {
    return data(await secrets.getForVault(path));
  } catch (error) {
    ignoreMissing(error);
    return show(secrets, path, null);
  }
}

/**
 * Shows a version; of a deleted or destroyed one its metadata, with 404.
 *
 * @param version null: the current one
 * @param subkeys the depth to which keys are shown, without values; null: the value is
 */
async function show(secrets: VaultSecrets, path: string, version: number | null, subkeys: number | null = null) {
  const request = ({ blob }: { readonly blob: Bytes }) => ({ op: "kvRead", path, blob, version, subkeys }) as const;
  const { status, response } = await secrets.space.askAbout(path, request);
  return data(response, status);
}

/** @throws the error, unless it is NOT_FOUND */
function ignoreMissing(error: unknown): void {
  if (!(error instanceof VaultError) || error.code !== "NOT_FOUND") throw error;
}

type Written = BasicCall & { readonly path: string; readonly body: SharedBytes };

async function write({ vault, path, body, permit, caller }: Written & { readonly caller: Caller }, isPatch: boolean) {
  const { response } = await vault.secrets.write(path, { kind: "kvWrite", body, isPatch }, unconditional, permit);
  return seesMetadata(caller) ? data(response) : object({ ...parsed(response), custom_metadata: null });
}

/** Changes the versions whose numbers are in the body. Missing versions stay missing. */
async function changeVersions({ vault, path, body, permit }: Written, changed: VersionChange): Promise<Whole> {
  const { secrets } = vault;
  const versions = await secrets.versionsIn(body);
  await secrets.changeVersions(path, versions, changed, { permit, mayDestroyCurrent: true }).catch(ignoreMissing);
  return nothing;
}

async function configure({ vault, path, body, permit }: Written, isPatch: boolean): Promise<Whole> {
  await vault.secrets.write(path, { kind: "kvConfigure", body, isPatch }, unconditional, permit);
  return nothing;
}

type Listed = BasicCall & { readonly folder: string; readonly query: Page; readonly caller: Caller };

/** Returns the names in a folder; those of folders end in a slash. A folder that has none is not found. */
async function listKeys({ vault, folder: prefix, query: page, caller, permit, recorded }: Listed): Promise<Whole> {
  const names = await keysIn(vault.secrets, prefix, visibleRanges(caller).within, permit);
  const keys = namesAfter(page, names);
  recorded.prefix = prefix;
  recorded.count = keys.length;
  if (keys.length === 0) throw new VaultError("NOT_FOUND", "this folder is empty");
  return object({ keys });
}

function readFolder(parameter: string): string {
  const name = percentDecode(parameter, "the path").normalize("NFC").replace(/\/$/, "");
  return name === "" ? "" : `${name}/`;
}

type Within = Parameters<VaultSecrets["names"]>[0]["within"];

const pageNames = 1_000;

/**
 * Sorts behind nearly every path in a folder; segments may begin with it. Written as a number, because lintian takes a file with
 * the character itself for damaged.
 */
const behindMost = String.fromCodePoint(0x10ffff);

/** Jumps over a folder once it has one of its names. `still`: throws once the caller's token has ended. */
export async function keysIn(
  secrets: VaultSecrets,
  prefix: string,
  within: Within,
  still: () => void,
): Promise<readonly string[]> {
  const keys: string[] = [];
  for (let after: string | undefined = ""; after !== undefined; ) {
    const names: readonly string[] = await secrets.names({ prefix, after, ...(within && { within }) }, pageNames);
    still();
    for (const name of names) {
      const key = childKey(name.slice(prefix.length));
      if (key !== keys.at(-1)) keys.push(key);
    }
    // DANGER: a page must begin behind the one before, or a folder of names behind its own end would be read for ever.
    after = names.length < pageNames ? undefined : later(names.at(-1) ?? "", endOfFolder(`${prefix}${keys.at(-1)}`));
  }
  return keys;
}

/** Returns what sorts behind a name, and behind nearly all names in it if it is a folder. */
function endOfFolder(name: string): string {
  return name.endsWith("/") ? `${name}${behindMost}` : name;
}

function later(one: string, other: string): string {
  return compareUtf8(one, other) > 0 ? one : other;
}

/** Returns the name in the folder, up to its first slash. */
function childKey(rest: string): string {
  const slash = rest.indexOf("/");
  return slash < 0 ? rest : rest.slice(0, slash + 1);
}
