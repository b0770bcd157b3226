/** Handlers of the KV secrets engine, version 2. */
import type { Request, Response } from "express";
import type { VersionChange } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import { ownMemory, readBody, sharedMemory } from "../http/body.js";
import type { Handler, Service } from "../http/endpoint.js";
import { authorizePath, secretPathOf, seesMetadata, stillValid, visibleRanges } from "../http/guards.js";
import { contextOf } from "../http/request.js";
import { parsed } from "../http/response.js";
import { compareUtf8, percentDecode } from "../paths/secret-path.js";
import type { VaultSecrets } from "../vault/secrets.js";
import { maxMembersBytes, membersOf, numberIn, pageOf } from "./members.js";
import { sendData, sendNothing, sendObject, sendRead } from "./response.js";

/** Sends the newest version, or the one that `version` names; of a deleted or destroyed one its metadata, with 404. */
export async function readSecret(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const path = permittedPath(req, parameter);
  const version = versionOf(req);
  const { kv } = service.vault;
  const { status, response } = await (version === null ? kv.read(path) : kv.readVersion(path, version));
  sendRead(req, res, response, status);
}

/** Sends the keys of a value without their values, down to `depth`; 0 is all. */
export async function readSubkeys(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const path = permittedPath(req, parameter);
  const { status, response } = await service.vault.kv.readVersion(path, versionOf(req), numberIn(req, "depth"));
  sendRead(req, res, response, status);
}

export const writeSecret = writing(false);
export const patchSecret = writing(true);

function writing(isPatch: boolean): Handler {
  return async (service, req, res, parameter) => {
    const path = permittedPath(req, parameter);
    const body = await readBody(req, res, service.maxBodyBytes, sharedMemory);
    const response = await service.vault.kv.write(path, body, isPatch, stillValid(req));
    if (seesMetadata(req)) sendData(res, response);
    else sendObject(res, { ...parsed(response), custom_metadata: null });
  };
}

export async function deleteSecret(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const path = permittedPath(req, parameter);
  await service.vault.kv.changeVersions(path, null, "delete", stillValid(req));
  sendNothing(res);
}

/** Changes versions that the body numbers. */
export function changingVersions(change: VersionChange): Handler {
  return async (service, req, res, parameter) => {
    const path = permittedPath(req, parameter);
    const body = await readBody(req, res, service.maxBodyBytes, sharedMemory);
    await service.vault.kv.changeVersions(path, body, change, stillValid(req));
    sendNothing(res);
  };
}

export async function readMetadata(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  sendRead(req, res, await service.vault.kv.metadata(permittedPath(req, parameter)));
}

export const writeMetadata = configuring(false);
export const patchMetadata = configuring(true);

function configuring(isPatch: boolean): Handler {
  return async (service, req, res, parameter) => {
    const path = permittedPath(req, parameter);
    const body = await readBody(req, res, service.maxBodyBytes, sharedMemory);
    await service.vault.kv.configure(path, body, isPatch, stillValid(req));
    sendNothing(res);
  };
}

/** Moves the secret to the trash, with all of its versions. */
export async function deleteMetadata(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const path = permittedPath(req, parameter);
  await service.vault.trash.move(path, undefined, stillValid(req)).catch((error: unknown) => {
    if (!(error instanceof VaultError) || error.code !== "NOT_FOUND") throw error;
  });
  sendNothing(res);
}

/** Settings of a mount: there are none. */
export function readConfig(_service: Service, _req: Request, res: Response): void {
  sendObject(res, { cas_required: false, delete_version_after: "0s", max_versions: 0 });
}

/** Refuses a setting of a mount; a request for none changes nothing. */
export async function refuseConfig(_service: Service, req: Request, res: Response): Promise<void> {
  membersOf(await readBody(req, res, maxMembersBytes, ownMemory), "writeConfig");
  sendNothing(res);
}

function permittedPath(req: Request, parameter: string): string {
  const path = secretPathOf(req, parameter);
  authorizePath(req, path);
  return path;
}

/** Null: the newest. */
function versionOf(req: Request): number | null {
  const version = numberIn(req, "version");
  if (version === 0) return null;
  contextOf(req).version = version;
  return version;
}

/** Sends the names in a folder; those of folders end in a slash. A folder that has none is not found. */
export async function listKeys(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const folder = folderOf(parameter);
  const keys = await keysIn(service.vault.secrets, folder, visibleRanges(req).within, stillValid(req));
  const page = pageOf(req, keys);
  contextOf(req).prefix = folder;
  contextOf(req).count = page.length;
  if (page.length === 0) throw new VaultError("NOT_FOUND", "this folder is empty");
  sendObject(res, { keys: page });
}

/** Returns the prefix of the paths in a folder, whether its name ends in a slash or not. */
function folderOf(parameter: string): string {
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
      const key = keyOf(name.slice(prefix.length));
      if (key !== keys.at(-1)) keys.push(key);
    }
    // DANGER: a page must begin behind the one before, or a folder of names behind its own end would be read for ever.
    after = names.length < pageNames ? undefined : later(names.at(-1) ?? "", endOf(`${prefix}${keys.at(-1)}`));
  }
  return keys;
}

/** Returns what sorts behind a name, and behind nearly all names in it if it is a folder. */
function endOf(name: string): string {
  return name.endsWith("/") ? `${name}${behindMost}` : name;
}

function later(one: string, other: string): string {
  return compareUtf8(one, other) > 0 ? one : other;
}

/** Returns the name in the folder, up to its first slash. */
function keyOf(rest: string): string {
  const slash = rest.indexOf("/");
  return slash < 0 ? rest : rest.slice(0, slash + 1);
}
