/** Endpoints of Vault that this port lacks: each response says so, and never looks like missing data. */
import { VaultError } from "../errors.js";
import type { Target } from "../http/endpoint.js";

/**
 * A request that no endpoint serves. Its text is in `errors`, and in `warnings` as well where Vault has it there: its command line
 * shows a 404's warnings, and not its errors.
 */
export class Unsupported extends VaultError {
  readonly isWarning: boolean;

  constructor(message: string, { allow, isWarning = false }: { allow?: readonly string[]; isWarning?: boolean } = {}) {
    super("NOT_FOUND", message, allow === undefined ? {} : { allow });
    this.isWarning = isWarning;
  }
}

/** Words after `keys/NAME/` that name an operation on the key, with what is said of it; none ends a key's name. */
const keyOperations: ReadonlyMap<string, string> = new Map([
  ["trim", "the versions of a key cannot be trimmed"],
  ["import", "keys cannot be imported here: strongroom transit import does that"],
  ["import_version", "versions of a key cannot be imported"],
  ["soft-delete", "a key cannot be deleted softly: allow its deletion in keys/NAME/config, and delete it"],
  ["soft-delete-restore", "a key cannot be deleted softly, so none can be restored"],
  ["csr", "keys sign no certificate requests"],
  ["set-certificate", "keys have no certificates"],
]);

/** Operations of Vault's engines in the place of ours, below a mount. */
const mountOperations: ReadonlyMap<string, string> = new Map([
  ["detailed-metadata", "lists have no details: read the metadata of each secret"],
  ["backup", "a key cannot be backed up alone: strongroom backup saves the vault"],
  ["restore", "a key cannot be restored alone: strongroom restore does that with a vault"],
  ["byok-export", "keys are not exported to other keys"],
  ["wrapping_key", "keys cannot be imported here: strongroom transit import does that"],
  ["cache-config", "there is no cache of keys to configure"],
  ["config/keys", "there are no settings for all keys: encrypting with a missing key is an error"],
]);

/** Second segments that are operations of ours. */
const operations = new Set([
  ...["data", "metadata", "delete", "undelete", "destroy", "subkeys", "config"],
  ...["keys", "encrypt", "decrypt", "rewrap", "datakey", "random", "hash", "hmac", "sign", "verify", "export"],
]);

const systems = new Set(["sys", "auth", "identity", "cubbyhole"]);

/** Returns what is wrong with a name of a transit key, because it is an operation's; null: nothing. */
export function operationInKeyName(name: string, isNew: boolean): string | null {
  const segments = name.split("/");
  const problem = segments.length > 1 ? keyOperations.get(segments.at(-1) ?? "") : undefined;
  if (problem !== undefined) return problem;
  const isNested = isNew && segments.length > 1 && operations.has(segments[0] ?? "");
  return isNested ? nestedMount : null;
}

const nestedMount =
  "the name of a mount has no slash here: secrets of team/kv are those in the folder kv of the mount team";
const doubled = "the path has two slashes in a row: leave one of them out";
const version1 =
  "there is nothing at this path: secrets are at MOUNT/data/PATH (KV version 2) and keys at MOUNT/keys/NAME; KV version 1 and other engines are not supported";

/** Returns the name of a mount without a slash at its end. @throws VaultError BAD_REQUEST for one with a slash inside */
export function mountName(name: string): string {
  const trimmed = name.replace(/\/$/, "");
  if (trimmed.includes("/")) throw new VaultError("BAD_REQUEST", nestedMount);
  return trimmed;
}

/** Returns what a request for an unknown path or with an unknown method is told. `allow`: the methods of a known path. */
export function unsupported({ path }: Pick<Target, "path">, allow: readonly string[]): Unsupported {
  if (allow.length > 0)
    return new Unsupported(`unsupported operation: this path supports only ${allow.join(", ")}`, { allow });
  if (path.includes("//")) return new Unsupported(doubled);
  if (!path.startsWith("/v1/")) return new Unsupported("unsupported path: all paths begin with /v1/");
  const [mount = "", operation = "", next = ""] = path.slice(4).split("/");
  if (systems.has(mount)) return new Unsupported(`unsupported path: this part of ${mount}/ is not supported`);
  const problem = mountOperations.get(`${operation}/${next}`) ?? mountOperations.get(operation);
  if (problem !== undefined) return new Unsupported(`unsupported path: ${problem}`);
  const isNested = operations.has(next) && operation !== "";
  return new Unsupported(isNested ? `${nestedMount}; ${version1}` : version1, { isWarning: true });
}
