/** Secret paths and folders as arguments of commands. */
import { VaultError } from "../../../errors.js";
import { canonicalPath as canonicalSecretPath } from "../../../paths/secret-path.js";
import { CommandFailure } from "../errors.js";
import { shellWord } from "../hints.js";
import { printable, shortened } from "../output.js";

/** The prefix of a reference. */
export const scheme = "strongroom://";

/** Returns the canonical form of a path. @throws CommandFailure usage, when it is invalid */
export function mustBePath(path: string): string {
  if (/[^/]\/$/.test(path)) throw new CommandFailure("usage", namesFolder(path));
  return canonicalPath(path, shortened(printable(path), 80)); // what is too long for a path may be a value
}

function namesFolder(path: string): string {
  return `${printable(path)}: the slash at its end names a folder: leave it out, or list the folder with  strongroom ls ${shellWord(path)}`;
}

/** Returns the canonical form of a path; `where` begins the message. @throws CommandFailure usage, when it is invalid */
export function canonicalPath(path: string, where: string): string {
  const parsed = parsePath(path);
  if (typeof parsed === "string") return parsed;
  throw new CommandFailure("usage", `${where === "" ? "" : `${where}: `}${parsed.problem}`);
}

/** Returns the canonical form of a path, or of a subtree, which ends in a slash; `/` is the whole vault. @throws CommandFailure usage */
export function mustBeScope(path: string, where = ""): string {
  if (path === "/") return path;
  canonicalPath(path.replace(/\/$/, ""), where);
  return canonical(path);
}

/** Returns paths and subtrees as the API takes them, for which none is the whole vault. */
export function scopePaths(scopes: readonly string[]): readonly string[] {
  return scopes.includes("/") ? [] : scopes;
}

/** Returns why a path is invalid, or null. */
export function problemOfPath(path: string): string | null {
  const parsed = parsePath(path);
  return typeof parsed === "string" ? null : parsed.problem;
}

function parsePath(path: string): string | { readonly problem: string } {
  if (/^\/[^/]/.test(path)) return { problem: `paths have no leading slash, write ${printable(path.slice(1))}` };
  if (path === "/") return { problem: "this is the whole vault, and one path is needed, such as app/db/password" };
  if (path.startsWith(scheme)) return { problem: notAReference(path.slice(scheme.length)) };
  try {
    return canonicalSecretPath(path);
  } catch (error) {
    if (error instanceof VaultError) return { problem: error.message };
    throw error;
  }
}

function notAReference(referred: string): string {
  const [path = "", field] = referred.split("#");
  const problem = `a path is needed, not a reference: write ${printable(path)}`;
  if (field === undefined) return problem;
  return `${problem}; its field is shown by  strongroom get ${shellWord(path)} --field ${shellWord(field)}`;
}

/** Returns the form in which the server keeps and compares paths. */
export function canonical(path: string): string {
  return path.normalize("NFC");
}

/** Returns the path of a copy: in a target that ends in a slash, the secret keeps its name. */
export function targetPath(from: string, to: string): string {
  return canonical(to.endsWith("/") ? `${folderPrefix(to)}${from.slice(from.lastIndexOf("/") + 1)}` : to);
}

/** Returns what the paths in a folder begin with: `app` and `app/` are the same; `/`, or nothing, is the whole vault. */
export function folderPrefix(folder: string): string {
  const path = canonical(folder).replace(/\/$/, "");
  return path === "" ? "" : `${path}/`;
}
