/** Handlers of the transit secrets engine. Bodies are read, and results made, in the key worker. */
import type { Request, Response } from "express";
import type { TransitUse, VaultForm } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import { readBody, sharedMemory } from "../http/body.js";
import type { Handler, Service } from "../http/endpoint.js";
import {
  authorizeBody,
  authorizePath,
  requireValidToken,
  secretPathOf,
  stillValid,
  visibleRanges,
} from "../http/guards.js";
import { contextOf } from "../http/request.js";
import { pageOf } from "./members.js";
import { sendData, sendNothing, sendObject, sendRead } from "./response.js";
import { wholeVault } from "./table.js";
import { operationInKeyName, Unsupported } from "./unsupported.js";

/** The handlers of `transitRows`. */
export const transitHandlers = {
  createTransitKey: createKey,
  showTransitKey: showKey,
  deleteTransitKey: deleteKey,
  rotateTransitKey: changing("rotate", () => "key not found"),
  configureTransitKey: changing("config", (name) => `no existing key named ${name} could be found`),
  exportTransitKey: exportKey,
  encrypt: using("encrypt"),
  decrypt: using("decrypt"),
  rewrap: using("rewrap"),
  sign: using("sign"),
  verify: using("verify"),
  hmac: using("hmac"),
  dataKey,
} as const;

/** A key that exists stays as it is. */
async function createKey(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const { name, form } = managedKeyOf(req, parameter, true);
  const body = await readBody(req, res, service.maxBodyBytes, sharedMemory);
  const { transit } = service.vault;
  try {
    sendData(res, await transit.create(name, body, stillValid(req), form));
  } catch (error) {
    if (!(error instanceof VaultError) || error.code !== "ALREADY_EXISTS") throw error;
    sendRead(req, res, await transit.show(name, form), 200, [`key ${form.name} already existed`]);
  }
}

async function showKey(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const { name, form } = managedKeyOf(req, parameter);
  authorizePath(req, name);
  sendRead(req, res, await service.vault.transit.show(name, form));
}

export async function listKeyNames(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const folder = wholeMount(req) ? "" : `${secretPathOf(req, parameter.replace(/\/$/, ""))}/`;
  const names = await service.vault.transit.names(folder, visibleRanges(req).within);
  requireValidToken(req);
  contextOf(req).secretPath = null;
  const keys = pageOf(
    req,
    names.map((name) => name.slice(folder.length)),
  );
  contextOf(req).count = keys.length;
  if (keys.length === 0) throw new VaultError("NOT_FOUND", "there are no keys here");
  sendObject(res, { keys });
}

async function deleteKey(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const { name, form } = managedKeyOf(req, parameter);
  await orMissing(
    service.vault.transit.remove(name, stillValid(req), form),
    `error deleting policy ${form.name}: could not delete key; not found`,
  );
  sendNothing(res);
}

function changing(change: "rotate" | "config", missing: (name: string) => string): Handler {
  return async (service, req, res, parameter) => {
    const { name, form } = managedKeyOf(req, parameter);
    const body = await readBody(req, res, service.maxBodyBytes, sharedMemory);
    sendData(
      res,
      await orMissing(service.vault.transit.change(change, name, body, stillValid(req), form), missing(form.name)),
    );
  };
}

/** `…/export/TYPE/NAME`, and perhaps a version. */
async function exportKey(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const { folder, rest } = splitMount(req, parameter);
  const [exportType = "", ...segments] = rest.split("/");
  const last = segments.at(-1) ?? "";
  const version = segments.length > 1 && /^(?:latest|v?\d{1,9})$/.test(last) ? last : "";
  const name = version === "" ? segments : segments.slice(0, -1);
  const key = keyOf(req, folder + name.join("/"), { exportType, version });
  sendRead(req, res, await service.vault.transit.export(key.name, key.form));
}

const missingKeys: Readonly<Record<TransitUse, string>> = {
  encrypt: "encryption key not found",
  decrypt: "encryption key not found",
  rewrap: "encryption key not found",
  datakey: "encryption key not found",
  hmac: "encryption key not found",
  sign: "signing key not found",
  verify: "signature verification key not found",
};

/** Encrypts, signs and so on: one input, or a batch of them. The hash may be the last segment of the path. */
function using(use: TransitUse): Handler {
  return (service, req, res, parameter) => {
    const { rest } = splitMount(req, parameter);
    const hash = /^.+\/(sha[23]-\d{3}|sha1)$/.exec(rest)?.[1];
    if (hash === undefined || !hashing.has(use)) return useKey(service, req, res, use, keyOf(req, parameter));
    return useKey(service, req, res, use, keyOf(req, parameter.slice(0, -hash.length - 1), { hash }));
  };
}

const hashing: ReadonlySet<TransitUse> = new Set(["sign", "verify", "hmac"]);

/** `…/datakey/plaintext/NAME`, or `wrapped`. */
function dataKey(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const { folder, rest } = splitMount(req, parameter);
  const [, kind, name] = /^(plaintext|wrapped)\/(.+)$/.exec(rest) ?? [];
  if (name === undefined) throw new VaultError("BAD_REQUEST", "Invalid path, must be 'plaintext' or 'wrapped'");
  const key = keyOf(req, folder + name, { plaintext: String(kind === "plaintext") });
  return useKey(service, req, res, "datakey", key);
}

type Key = { readonly name: string; readonly form: VaultForm };

async function useKey(service: Service, req: Request, res: Response, use: TransitUse, key: Key): Promise<void> {
  const { transit } = service.vault;
  const { name, form } = key;
  const body = await readBody(req, res, service.maxBatchBytes, sharedMemory);
  await authorizeBody(req, name, () => transit.validateUse(use, name, body, form));
  const { response, status } = await orMissing(transit.useAs({ use, name, body, form }), missingKeys[use]);
  sendRead(req, res, response, status);
}

/** `…/random`, and perhaps a source, and the number of bytes. */
export async function random(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const { rest } = splitMount(req, parameter);
  const [, bytes] = /^(?:(?:platform|seal|all)(?:\/|$))?(\d*)$/.exec(rest) ?? [];
  if (bytes === undefined) throw new VaultError("BAD_REQUEST", "the source must be platform, seal or all");
  const body = await readBody(req, res, service.maxBodyBytes, sharedMemory);
  sendData(res, await service.vault.transit.random(body, { name: "", given: bytes === "" ? {} : { bytes } }));
}

/** `…/hash`, and perhaps the algorithm. */
export async function hash(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const { rest } = splitMount(req, parameter);
  const body = await readBody(req, res, service.maxBodyBytes, sharedMemory);
  sendData(res, await service.vault.transit.hash(body, { name: "", given: rest === "" ? {} : { hash: rest } }));
}

/** Returns the key's name as the vault has it, and what the client calls it. @throws VaultError BAD_REQUEST */
function keyOf(req: Request, parameter: string, given: VaultForm["given"] = {}): Key {
  const name = secretPathOf(req, parameter);
  const shown = wholeMount(req) ? name : name.slice(name.indexOf("/") + 1);
  if (!/\/(?:rotate|config)$/.test(name)) return { name, form: { name: shown, given } };
  contextOf(req).secretPath = null;
  throw new VaultError("BAD_REQUEST", "the name of a transit key must not end in /rotate or /config");
}

/** As `keyOf`, below `keys/`, where Vault's operations on a key are no part of its name. @throws Unsupported */
function managedKeyOf(req: Request, parameter: string, isNew = false): Key {
  const key = keyOf(req, parameter);
  const problem = operationInKeyName(key.form.name, isNew);
  if (problem === null) return key;
  contextOf(req).secretPath = null;
  throw new Unsupported(`unsupported path: ${problem}`);
}

/** Returns the mount's folder, "" or with a slash at the end, and what is behind it in the raw text of a parameter. */
function splitMount(req: Request, parameter: string): { readonly folder: string; readonly rest: string } {
  const end = wholeMount(req) ? 0 : parameter.indexOf("/") + 1;
  return { folder: parameter.slice(0, end), rest: parameter.slice(end) };
}

function wholeMount(req: Request): boolean {
  return contextOf(req).target.path.startsWith(`/v1/${wholeVault}/`);
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
