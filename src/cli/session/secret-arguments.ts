/** Secret paths and types as arguments of commands. */
import { type SecretEntry, type SecretType, type StrongroomClient, StrongroomError } from "../../client/client.js";
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

/** What a list says of a secret; nothing, when that is damaged. */
export type Present = { readonly entry: SecretEntry | undefined };

/** Returns what is known of a secret without its value, or null without one. @throws CommandFailure usage, for an invalid path */
export async function lookAt(client: StrongroomClient, path: string): Promise<Present | null> {
  const wanted = mustBePath(path);
  const { entries, damaged = [] } = await client.list({ prefix: wanted, limit: 1 });
  const entry = entries.find((found) => found.path === wanted);
  return entry === undefined && !damaged.includes(wanted) ? null : { entry };
}

/** Returns the canonical form of a path. @throws CommandFailure usage, when it is invalid */
export function mustBePath(path: string): string {
  if (/[^/]\/$/.test(path)) throw new CommandFailure("usage", namesFolder(printable(path)));
  return canonicalPath(path, path === "" ? "an argument" : printable(path));
}

function namesFolder(shown: string): string {
  return `${shown}: the slash at its end names a folder: leave it out, or list the folder with  strongroom ls ${shown}`;
}

/** @throws CommandFailure conflict */
export function refuseOverwriting(path: string, remedy: string): never {
  throw new CommandFailure("conflict", `${path} already exists: ${remedy}`);
}

/** Runs a put that must not replace a secret. @throws CommandFailure conflict, when another program has created one meanwhile */
export async function creating<T>(path: string, remedy: string, put: () => Promise<T>): Promise<T> {
  try {
    return await put();
  } catch (error) {
    if (isConflict(error)) refuseOverwriting(path, remedy);
    throw error;
  }
}

/** Whether the condition of a change did not hold. */
export function isConflict(error: unknown): error is StrongroomError & { readonly code: "PRECONDITION_FAILED" } {
  return error instanceof StrongroomError && error.code === "PRECONDITION_FAILED";
}

/** Returns the form in which the server keeps and compares paths. */
export function canonical(path: string): string {
  return path.normalize("NFC");
}

/** Returns the path of a copy: in a target that ends in a slash, the secret keeps its name. */
export function targetPath(from: string, to: string): string {
  return canonical(to.endsWith("/") ? `${to}${from.slice(from.lastIndexOf("/") + 1)}` : to);
}
