/** Owns what several commands ask about secrets: what is at a path, which types there are, and where a copy goes. */
import type { Metadata, PutOptions, StrongroomClient } from "../../client/client.js";
import { CommandFailure } from "./exit-codes.js";
import { printable } from "./output.js";
import { canonicalPath } from "./references.js";

const types: { readonly [T in NonNullable<PutOptions["type"]>]: true } = {
  "oauth-token": true,
  "api-key": true,
  password: true,
  certificate: true,
  other: true,
};

export const secretTypes: readonly string[] = Object.keys(types);

/**
 * What is stored with the secret at a path, without its value being opened; null when there is none.
 * @throws CommandFailure usage, when it can be no secret's path
 */
export async function lookAt(client: StrongroomClient, path: string): Promise<Metadata | null> {
  const wanted = mustBePath(path);
  const { entries, damaged = [] } = await client.list({ prefix: wanted, limit: 1 });
  const entry = entries.find((found) => found.path === wanted);
  return entry?.metadata ?? (damaged.includes(wanted) ? {} : null);
}

/** A path as it was typed, in its canonical form. @throws CommandFailure usage, when it can be no secret's path */
export function mustBePath(path: string): string {
  return canonicalPath(path, path === "" ? "an argument" : printable(path));
}

/** @throws CommandFailure conflict */
export function refuseOverwriting(path: string, remedy: string): never {
  throw new CommandFailure("conflict", `there is a secret at ${path} already: ${remedy}`);
}

/** The form in which the server keeps and compares paths. */
export function canonical(path: string): string {
  return path.normalize("NFC");
}

/** A target that ends in a slash is a folder: the secret keeps its name in it. */
export function targetPath(from: string, to: string): string {
  return canonical(to.endsWith("/") ? `${to}${from.slice(from.lastIndexOf("/") + 1)}` : to);
}
