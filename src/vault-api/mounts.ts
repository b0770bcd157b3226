/**
 * Endpoints of mounts, of which there is no state: `secret` is the whole vault and `transit` the custom name for keys, each top
 * folder is a mount of KV, version 2, and any other name can be used as one.
 */
import { mountConfigMembers } from "../../workers/vault-members.js";
import type { Caller } from "../access/credentials.js";
import { visibleRanges } from "../access/rights.js";
import { VaultError } from "../errors.js";
import { fields } from "../http/body.js";
import { type BasicCall, endpoint, none, type Subject, type Whole } from "../http/endpoint.js";
import { percentDecode } from "../paths/secret-path.js";
import { keysIn } from "./kv.js";
import { type BodyMembers, checkMembers, parseBodyMembers } from "./members.js";
import { nothing, object } from "./response.js";
import { wholeVault } from "./table.js";
import { mountName } from "./unsupported.js";

const transitMount = "transit";

/** A mount, which is the whole parameter, or its first segment. */
const mount: Subject<{ readonly mount: string }> = {
  read: (text) => ({ mount: wholeName(text) }),
  auditPath: () => null,
};
const mountOfPath: typeof mount = { read: (text) => ({ mount: firstMountName(text) }), auditPath: () => null };

// biome-ignore format: what is decided for an endpoint stands in lines that can be compared
export const mountRows = [
  endpoint({
    operation: "listMounts", at: "GET /v1/sys/mounts", scope: "some", guard: "unlocked", audit: null,
    subject: none, body: null, conditional: false, reads: true,
    async handle(call) {
      const mounts = await visibleMounts(call);
      return object(mounts, mounts);
    },
  }),
  endpoint({
    operation: "showMount", at: "GET /v1/sys/mounts/:name", scope: "some", guard: "unlocked", audit: null,
    subject: mount, body: null, conditional: false, reads: true,
    handle({ mount: name }) {
      const found = mountAt(name);
      return object(found, found);
    },
  }),
  endpoint({
    operation: "enableMount", at: "POST /v1/sys/mounts/:name", scope: "root", guard: "unlocked", audit: null,
    subject: mount, body: fields(), conditional: false, reads: false,
    handle: ({ body }) => enable(body),
  }),
  endpoint({
    operation: "disableMount", at: "DELETE /v1/sys/mounts/:name", scope: "root", guard: "unlocked", audit: null,
    subject: mount, body: null, conditional: false, reads: false,
    handle: refuseChange,
  }),
  endpoint({
    operation: "showTuning", at: "GET /v1/sys/mounts/:name/tune", scope: "some", guard: "unlocked", audit: null,
    subject: mount, body: null, conditional: false, reads: true,
    handle({ mount: name }) {
      const { config, description, options } = mountAt(name);
      const tuning = { ...config, description, options };
      return object(tuning, tuning);
    },
  }),
  endpoint({
    operation: "tuneMount", at: "POST /v1/sys/mounts/:name/tune", scope: "root", guard: "unlocked", audit: null,
    subject: mount, body: null, conditional: false, reads: false,
    handle: refuseChange,
  }),
  endpoint({
    operation: "listMountsForUi", at: "GET /v1/sys/internal/ui/mounts", scope: "some", guard: "unlocked", audit: null,
    subject: none, body: null, conditional: false, reads: true,
    handle: async (call) => object({ secret: await visibleMounts(call), auth: {} }),
  }),
  // Vault's command line asks before each command which version of KV a path belongs to.
  endpoint({
    operation: "showMountOfPath", at: "GET /v1/sys/internal/ui/mounts/:path", scope: "some", guard: "unlocked", audit: null,
    subject: mountOfPath, body: null, conditional: false, reads: true,
    handle: ({ mount: name }) => object({ ...mountAt(name), path: `${name}/` }),
  }),
];

function mountAt(name: string) {
  const isTransit = name === transitMount;
  const config = { default_lease_ttl: 0, max_lease_ttl: 0, force_no_cache: false };
  const plugin = {
    plugin_version: "",
    running_plugin_version: "",
    running_sha256: "",
    deprecation_status: "supported",
  };
  return {
    ...{ type: isTransit ? "transit" : "kv", options: isTransit ? null : { version: "2" }, description: "" },
    ...{ accessor: `${isTransit ? "transit" : "kv"}_${name}`, uuid: "", config, ...plugin },
    ...{ local: false, seal_wrap: false, external_entropy_access: false },
  };
}

type Asked = BasicCall & { readonly caller: Caller };

/** Returns the mounts that a caller may see, by their names with a slash. */
async function visibleMounts(call: Asked) {
  const names = [...new Set([wholeVault, transitMount, ...(await visibleFolders(call))])].sort();
  return Object.fromEntries(names.map((name) => [`${name}/`, mountAt(name)]));
}

/** A token that cannot list learns no names: it is shown the folders of its own paths. */
async function visibleFolders({ vault, caller, permit }: Asked): Promise<readonly string[]> {
  if (caller !== "root" && !caller.token.can.includes("list")) {
    return caller.token.paths.filter((path) => path.includes("/")).map(firstSegment);
  }
  const keys = await keysIn(vault.secrets, "", visibleRanges(caller).within, permit);
  return keys.filter((key) => key.endsWith("/")).map((key) => key.slice(0, -1));
}

/** Nothing is stored: every name is a mount already. @throws VaultError BAD_REQUEST for another engine */
function enable(body: Uint8Array): Whole {
  const { type, options, config } = parseBodyMembers(body, "enableMount");
  checkMembers(mountConfigMembers, objectIn("config", config));
  const { version, ...others } = objectIn("options", options);
  const isKv = (type === "kv-v2" && String(version ?? 2) === "2") || (type === "kv" && String(version) === "2");
  if (!isKv && type !== "transit") throw new VaultError("BAD_REQUEST", twoEngines);
  if (Object.keys(others).length > 0) throw new VaultError("BAD_REQUEST", "options can only be version here");
  return nothing;
}

function refuseChange(): never {
  throw new VaultError("BAD_REQUEST", "mounts have no state here: they cannot be tuned, moved or disabled");
}

const twoEngines =
  "only kv, version 2, and transit can be enabled: use the type kv-v2 or transit; kv without options.version is version 1";

/** @throws VaultError BAD_REQUEST */
function objectIn(name: string, value: unknown): BodyMembers {
  if (value === undefined || value === null || value === "") return {};
  if (typeof value === "object" && !Array.isArray(value)) return { ...value };
  throw new VaultError("BAD_REQUEST", `${name} must be a JSON object`);
}

function firstSegment(path: string): string {
  return path.split("/")[0] ?? "";
}

function firstMountName(parameter: string): string {
  return mustBeNamed(firstSegment(percentDecode(parameter, "the path")));
}

/** Returns the name of a mount that is the whole parameter. @throws VaultError BAD_REQUEST for one with a slash */
function wholeName(parameter: string): string {
  return mustBeNamed(mountName(percentDecode(parameter, "the path")));
}

function mustBeNamed(name: string): string {
  if (name !== "") return name;
  throw new VaultError("BAD_REQUEST", "the name of the mount is empty");
}
