/** Names of environment variables, made from the paths of secrets. */
import { CommandFailure } from "../session/exit-codes.js";
import { printable } from "../session/output.js";
import { steersPrograms } from "./steering-names.js";

export type Named = { readonly name: string; readonly path: string };

const variable = /^[A-Za-z_][A-Za-z0-9_]*$/;

export function isVariableName(name: string): boolean {
  return variable.test(name);
}

/**
 * Returns a name for each path: its last segment, if that is a valid name; else the segment in capitals, with `_` for
 * characters that a name cannot have. Paths whose name is in `taken` are left out.
 * @throws CommandFailure usage or conflict, with every path concerned and the remedy
 */
export function namesFor(paths: readonly string[], taken: ReadonlySet<string>, remedy: string): Named[] {
  const named = paths.map((path) => ({ name: nameOf(path), path })).filter(({ name }) => !taken.has(name));
  const unusable = named.filter(({ name }) => !isVariableName(name));
  if (unusable.length > 0) {
    const rows = unusable.map(({ name, path }) => `${printable(path)} would be ${name}`);
    throw new CommandFailure("usage", `a variable name starts with a letter or _: ${rows.join("; ")}: ${remedy}`);
  }
  const steering = named.filter(({ name }) => steersPrograms(name));
  if (steering.length > 0) {
    const rows = steering.map(({ name, path }) => `${printable(path)} would set ${name}`);
    throw new CommandFailure("usage", `${rows.join("; ")}, which changes how programs run: ${remedy}`);
  }
  const rows = [...byName(named)].filter(([, paths]) => paths.length > 1);
  if (rows.length === 0) return named;
  const clashes = rows.map(([name, paths]) => `${paths.map(printable).join(" and ")} would all be ${name}`);
  throw new CommandFailure("conflict", `${clashes.join("; ")}: ${remedy}`);
}

function nameOf(path: string): string {
  const last = path.slice(path.lastIndexOf("/") + 1);
  return isVariableName(last) ? last : last.toUpperCase().replace(/[^A-Z0-9_]/gu, "_");
}

function byName(named: readonly Named[]): Map<string, string[]> {
  const paths = new Map<string, string[]>();
  for (const { name, path } of named) paths.set(name, [...(paths.get(name) ?? []), path]);
  return paths;
}
