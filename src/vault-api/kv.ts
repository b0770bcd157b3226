/** Handlers of the KV secrets engine, version 2. */
import type { Request, Response } from "express";
import { VaultError } from "../errors.js";
import type { Service } from "../http/endpoint.js";
import { stillValid, visibleRanges } from "../http/guards.js";
import { contextOf } from "../http/request.js";
import { percentDecode } from "../paths/secret-path.js";
import type { VaultSecrets } from "../vault/secrets.js";
import { sendObject } from "./response.js";

/** Sends the names in a folder; those of folders end in a slash. A folder that has none is not found. */
export async function listKeys(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const folder = folderOf(parameter);
  const keys = await keysIn(service.vault.secrets, folder, visibleRanges(req).within, stillValid(service, req));
  contextOf(req).prefix = folder;
  contextOf(req).count = keys.length;
  if (keys.length === 0) throw new VaultError("NOT_FOUND", "there is nothing in this folder");
  sendObject(res, { keys });
}

/** Returns the prefix of the paths in a folder, whether its name ends in a slash or not. */
function folderOf(parameter: string): string {
  const name = percentDecode(parameter, "the path").normalize("NFC").replace(/\/$/, "");
  return name === "" ? "" : `${name}/`;
}

type Within = Parameters<VaultSecrets["names"]>[0]["within"];

const pageNames = 1_000;

/** Sorts behind every path in a folder. */
const behindAll = "\u{10ffff}";

/** Jumps over a folder once it has one of its names. `still`: throws once the caller's token has ended. */
async function keysIn(
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
    after = names.length < pageNames ? undefined : endOf(`${prefix}${keys.at(-1)}`);
  }
  return keys;
}

/** Returns what sorts behind a name, and behind all names in it if it is a folder. */
function endOf(name: string): string {
  return name.endsWith("/") ? `${name}${behindAll}` : name;
}

/** Returns the name in the folder, up to its first slash. */
function keyOf(rest: string): string {
  const slash = rest.indexOf("/");
  return slash < 0 ? rest : rest.slice(0, slash + 1);
}
