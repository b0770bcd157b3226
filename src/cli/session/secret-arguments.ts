/** Secret paths and types as arguments of commands. */
import type { Metadata, SecretType, StrongroomClient } from "../../client/client.js";
import { CommandFailure } from "./exit-codes.js";
import { printable } from "./output.js";
import { canonicalPath } from "./references.js";

const types: { readonly [T in SecretType]: true } = {
  "oauth-token": true,
  "api-key": true,
  password: true,
  certificate: true,
  other: true,
};

export const secretTypes: readonly string[] = Object.keys(types);

/** Returns a secret's metadata without reading its value, or null without one. @throws CommandFailure usage, for an invalid path */
export async function lookAt(client: StrongroomClient, path: string): Promise<Metadata | null> {
  const wanted = mustBePath(path);
  const { entries, damaged = [] } = await client.list({ prefix: wanted, limit: 1 });
  const entry = entries.find((found) => found.path === wanted);
  return entry?.metadata ?? (damaged.includes(wanted) ? {} : null);
}

/** Returns the canonical form of a path. @throws CommandFailure usage, when it is invalid */
export function mustBePath(path: string): string {
  return canonicalPath(path, path === "" ? "an argument" : printable(path));
}

/** @throws CommandFailure conflict */
export function refuseOverwriting(path: string, remedy: string): never {
  throw new CommandFailure("conflict", `${path} already exists: ${remedy}`);
}

/** Returns the form in which the server keeps and compares paths. */
export function canonical(path: string): string {
  return path.normalize("NFC");
}

/** Returns the path of a copy: in a target that ends in a slash, the secret keeps its name. */
export function targetPath(from: string, to: string): string {
  return canonical(to.endsWith("/") ? `${to}${from.slice(from.lastIndexOf("/") + 1)}` : to);
}
