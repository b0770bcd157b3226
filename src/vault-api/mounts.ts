/**
 * Handlers of mounts, of which there is no state: `secret` is the whole vault and `transit` the custom name for keys, each top
 * folder is a mount of KV, version 2, and any other name can be used as one.
 */
import type { Request, Response } from "express";
import { mountConfigMembers } from "../../workers/vault-members.js";
import { VaultError } from "../errors.js";
import { ownMemory, readBody } from "../http/body.js";
import type { Service } from "../http/endpoint.js";
import { stillValid, visibleRanges } from "../http/guards.js";
import { callerOf } from "../http/request.js";
import { percentDecode } from "../paths/secret-path.js";
import { keysIn } from "./kv.js";
import { type BodyMembers, checkMembers, maxMembersBytes, membersOf } from "./members.js";
import { sendNothing, sendObject } from "./response.js";
import { wholeVault } from "./table.js";
import { mountName } from "./unsupported.js";

const transitMount = "transit";

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

/** Returns those that a caller may see, by their names with a slash. */
async function visibleMounts(service: Service, req: Request) {
  const names = [...new Set([wholeVault, transitMount, ...(await visibleFolders(service, req))])].sort();
  return Object.fromEntries(names.map((name) => [`${name}/`, mountAt(name)]));
}

/** A token that cannot list learns no names: it is shown those that its own paths have. */
async function visibleFolders(service: Service, req: Request): Promise<readonly string[]> {
  const caller = callerOf(req);
  if (caller !== "root" && !caller.token.can.includes("list")) {
    return caller.token.paths.filter((path) => path.includes("/")).map(firstSegment);
  }
  const keys = await keysIn(service.vault.secrets, "", visibleRanges(req).within, stillValid(req));
  return keys.filter((key) => key.endsWith("/")).map((key) => key.slice(0, -1));
}

export async function listMounts(service: Service, req: Request, res: Response): Promise<void> {
  const mounts = await visibleMounts(service, req);
  sendObject(res, mounts, mounts);
}

export function showMount(_service: Service, _req: Request, res: Response, parameter: string): void {
  const mount = mountAt(wholeName(parameter));
  sendObject(res, mount, mount);
}

export function showTuning(_service: Service, _req: Request, res: Response, parameter: string): void {
  const { config, description, options } = mountAt(wholeName(parameter));
  const tuning = { ...config, description, options };
  sendObject(res, tuning, tuning);
}

/** What the command line of Vault asks before each command: which version of KV a path belongs to. */
export function showMountOfPath(_service: Service, _req: Request, res: Response, parameter: string): void {
  const name = nameOf(parameter);
  sendObject(res, { ...mountAt(name), path: `${name}/` });
}

export async function listMountsForUi(service: Service, req: Request, res: Response): Promise<void> {
  sendObject(res, { secret: await visibleMounts(service, req), auth: {} });
}

/** Nothing is stored: every name is a mount already. Refuses another engine. */
export async function enableMount(_service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  wholeName(parameter);
  const body = await readBody(req, res, maxMembersBytes, ownMemory);
  const { type, options, config } = membersOf(body, "enableMount");
  checkMembers(mountConfigMembers, objectIn("config", config));
  const { version, ...others } = objectIn("options", options);
  const isKv = (type === "kv-v2" && String(version ?? 2) === "2") || (type === "kv" && String(version) === "2");
  if (!isKv && type !== "transit") throw new VaultError("BAD_REQUEST", twoEngines);
  if (Object.keys(others).length > 0) throw new VaultError("BAD_REQUEST", "options can only be version here");
  sendNothing(res);
}

export function refuseMountChange(_service: Service, _req: Request, _res: Response, parameter: string): never {
  wholeName(parameter);
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

/** Returns the mount in a path, which is its first segment. */
function nameOf(parameter: string): string {
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
