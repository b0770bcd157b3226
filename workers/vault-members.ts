/**
 * Handling of the parameters and body members that the API documents of OpenBao and Vault name, for each operation of
 * the port for Vault's clients. A name that no document has is harmless. A GET, LIST or DELETE has them in its query, others
 * in their body.
 */
import { goFlag, goSeconds } from "./go-values.js";

/** The form of a value that asks for nothing, besides null and an empty text. */
type Neutral = "text" | "flag" | "number" | "json" | readonly string[];

type Refused = { readonly neutral: Neutral; readonly reason: string };

/** `harmless`: it changes nothing that this program does. */
export type Fate = "honoured" | "harmless" | Refused;

/** Fates of members, by name. */
export type Members = ReadonlyMap<string, Fate>;

const notSupported = "is not supported: leave it out";

function refused(neutral: Neutral, reason = notSupported): Refused {
  return { neutral, reason };
}

function each<F extends Fate>(fate: F, ...names: readonly string[]): Readonly<Record<string, F>> {
  return Object.fromEntries(names.map((name) => [name, fate]));
}

const method = { list: refused("flag", "must be true or false, for a path that can be listed"), scan: refused("flag") };
const listed = { ...each("honoured", "list", "after", "limit"), scan: method.scan };

const settings = each("honoured", "max_versions", "cas_required", "delete_version_after", "custom_metadata");
const perSecret = "is no setting of a mount here: set it for a secret, in its metadata";
const inOptions = refused("json", "belongs in options");

const kv = {
  readSecret: { ...method, version: "honoured" },
  writeSecret: { ...each("honoured", "data", "options"), cas: inOptions },
  patchSecret: { ...each("honoured", "data", "options"), cas: inOptions },
  deleteSecret: { versions: refused("json", "does not belong here: POST it to MOUNT/delete/PATH") },
  readSubkeys: { ...method, ...each("honoured", "version", "depth") },
  deleteVersions: { versions: "honoured" },
  undeleteVersions: { versions: "honoured" },
  destroyVersions: { versions: "honoured" },
  readMetadata: method,
  writeMetadata: settings,
  patchMetadata: settings,
  deleteMetadata: {},
  readConfig: method,
  writeConfig: {
    ...each(refused("number", perSecret), "max_versions", "delete_version_after"),
    cas_required: refused("flag", perSecret),
  },
  listKeys: listed,
} as const;

const whole = { context: refused("text"), nonce: refused("text") };
const batched = each("honoured", "batch_input", "reference");
const partial = { partial_failure_response_code: "honoured" } as const;
const signing = {
  ...batched,
  ...each("honoured", "input", "hash_algorithm", "algorithm", "prehashed", "signature_algorithm"),
  ...each("honoured", "marshaling_algorithm", "salt_length"),
  context: refused("text"),
};
const keySettings = {
  allow_plaintext_backup: refused("flag"),
  auto_rotate_period: refused("number", "is not supported: rotate the key when it is time"),
};
const managed = each(refused("text"), "external_key_ref", "managed_key_name", "managed_key_id", "parameter_set");

const transit = {
  createTransitKey: {
    ...each("honoured", "type", "exportable"),
    ...each(refused("flag"), "derived", "convergent_encryption"),
    ...keySettings,
    ...managed,
    context: refused("text"),
    key_size: refused(["0", "32"], "is not supported: keys for MACs have 32 bytes"),
  },
  showTransitKey: method,
  deleteTransitKey: {},
  rotateTransitKey: managed,
  configureTransitKey: {
    ...each("honoured", "min_decryption_version", "deletion_allowed", "exportable"),
    ...keySettings,
    min_encryption_version: refused("number", "is not supported: send key_version with each input"),
  },
  exportTransitKey: { ...method, format: refused("text") },
  encrypt: {
    ...batched,
    ...partial,
    ...whole,
    ...each("honoured", "plaintext", "associated_data", "key_version"),
    type: "harmless", // of a key that would be made: here none is
    convergent_encryption: refused("flag"),
  },
  decrypt: { ...batched, ...partial, ...whole, ...each("honoured", "ciphertext", "associated_data") },
  rewrap: { ...batched, ...whole, ...each("honoured", "ciphertext", "associated_data", "key_version") },
  sign: { ...signing, key_version: "honoured" },
  verify: { ...signing, ...each("honoured", "signature", "hmac") },
  hmac: { ...batched, ...each("honoured", "input", "algorithm", "key_version") },
  dataKey: { ...whole, ...each("honoured", "bits", "associated_data", "key_version") },
  random: {
    ...each("honoured", "bytes", "format"),
    source: refused(["platform", "seal", "all"], "must be platform, seal or all"),
  },
  hash: each("honoured", "input", "algorithm", "format"),
  listTransitKeys: listed,
} as const;

/** Members of these count for one input: next to a batch they would change nothing. */
export const perInput: readonly string[] = ["associated_data", "key_version", "context", "nonce"];

const auth = {
  createToken: {
    ...each("honoured", "policies", "ttl", "lease", "explicit_max_ttl", "display_name", "meta"),
    ...each(refused("flag"), "no_parent", "no_default_policy"),
    ...each(refused("text"), "id", "role_name", "entity_alias"),
    ...each(refused("number"), "num_uses", "period"),
    type: refused(["service", "default", "default-service"]),
    renewable: "harmless", // the response says that it is not
  },
  lookUpSelf: { ...method, token: "harmless" },
  lookUpByGet: { ...method, token: refused("text", "does not belong in an address: POST it") },
  lookUp: { token: "honoured", accessor: refused("text", "is not supported: send the token itself") },
  renewSelf: { increment: "honoured", token: "harmless" },
  renew: { ...each("honoured", "token", "increment"), accessor: refused("text") },
  revokeSelf: { token: "harmless" },
  revoke: { token: "honoured", accessor: refused("text") },
} as const;

const approle = { logIn: each("honoured", "role_id", "secret_id") } as const;

const mountConfig = { config: "honoured", options: "honoured" } as const;

const sys = {
  health: {
    ...each("honoured", "activecode", "sealedcode", "uninitcode"),
    // of standbys, which there are none of
    ...each("harmless", "standbyok", "perfstandbyok", "standbycode", "performancestandbycode", "drsecondarycode"),
    ...each("harmless", "haunhealthycode", "removedcode"),
  },
  sealStatus: {},
  leader: {},
  initialized: {},
  lock: {},
  unlock: {
    key: "honoured",
    reset: refused("flag", "is not supported: one key unseals, so there is no progress to reset"),
    migrate: refused("flag"),
  },
  listMounts: method,
  showMount: method,
  enableMount: {
    ...mountConfig,
    type: "honoured",
    ...each("harmless", "description", "local"), // nothing is stored, and nothing is replicated
    ...each(refused("flag"), "seal_wrap", "external_entropy_access"),
    ...each(refused("text"), "plugin_name", "plugin_version"),
  },
  disableMount: {},
  showTuning: method,
  tuneMount: {},
  listMountsForUi: method,
  showMountOfPath: method,
} as const;

/** Members of `config` of a new mount: leases and caches are none of kv's and transit's. */
export const mountConfigMembers: Members = new Map<string, Fate>(
  Object.entries({
    ...each("harmless", "default_lease_ttl", "max_lease_ttl", "force_no_cache"),
    ...each(refused("json"), "audit_non_hmac_request_keys", "audit_non_hmac_response_keys", "listing_visibility"),
    ...each(refused("json"), "passthrough_request_headers", "allowed_response_headers", "plugin_version"),
    ...each(refused("json"), "allowed_managed_keys", "token_type", "user_lockout_config", "delegated_auth_accessors"),
  }),
);

type Table = Readonly<Record<string, Readonly<Record<string, Fate>>>>;

/** Adds the names that documents have for other operations of an engine: a client that sends one means something by it. */
function completed<T extends Table>(table: T, ...others: readonly string[]): Readonly<Record<keyof T, Members>> {
  const names = new Set([...Object.values(table).flatMap((members) => Object.keys(members)), ...others]);
  const elsewhere = Object.fromEntries(
    [...names].map((name) => [name, refused("json", "has no meaning here: leave it out")]),
  );
  return byName(table, elsewhere);
}

function byName<T extends Table>(table: T, others: Table[string] = {}): Readonly<Record<keyof T, Members>> {
  const rows: { [operation: string]: Members } = {};
  for (const [operation, own] of Object.entries(table))
    rows[operation] = new Map(Object.entries({ ...others, ...own }));
  return rows as Record<keyof T, Members>;
}

/** Members by operation, as the rows of the port name them. */
export const vaultMembers = {
  ...completed(kv, "cas"),
  ...completed(transit, "min_available_version", "backup", "force", "version", "allow_rotation"),
  ...completed(auth),
  ...completed(approle),
  ...byName(sys),
};

export type VaultOperation = keyof typeof vaultMembers;

/** Every name in one of the tables of keys: what a body's reader looks for. */
export const transitMemberNames: readonly string[] = [...vaultMembers.encrypt.keys()];

/** Returns why a value of a member is refused; null: it is not. */
export function memberRefusal(members: Members, name: string, value: unknown): string | null {
  const fate = members.get(name);
  if (fate === undefined || typeof fate === "string" || asksForNothing(fate.neutral, value)) return null;
  return `${name} ${fate.reason}`;
}

function asksForNothing(neutral: Neutral, value: unknown): boolean {
  if (value === undefined || value === null || value === "") return true;
  if (neutral === "flag") return goFlag(value) === false;
  if (neutral === "number") return goSeconds(value) === 0;
  if (neutral === "json") return value === false || value === 0 || isEmpty(value);
  return neutral !== "text" && neutral.includes(String(value));
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}
