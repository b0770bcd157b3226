/** Environment variables of secrets: names made from paths, and lines that set them in a shell. */
import { CommandFailure } from "../kit/errors.js";
import { printable } from "../kit/output.js";
import { isShellName, steersPrograms } from "./steering.js";

export type Named = { readonly name: string; readonly path: string; readonly field?: string };

const variable = /^[A-Za-z_][A-Za-z0-9_]*$/;

function isVariableName(name: string): boolean {
  return variable.test(name);
}

/** Returns why nothing may set a variable of this name, or null. */
export function problemOfName(name: string): string | null {
  if (!isVariableName(name)) return `${printable(name)} is not a valid variable name`;
  return isShellName(name) ? `${name} has a meaning of its own in shells` : null;
}

/** Sources of a variable's name: the last segment of its path, or the path within the folder. */
export const namings = ["last", "path"] as const;
export type Naming = (typeof namings)[number];

type NameRules = {
  readonly naming: Naming;
  /** Prefix of all paths. */
  readonly folder: string;
  /** Names that are set otherwise: their paths are left out. */
  readonly taken: ReadonlySet<string>;
  /** Remedy for a name that cannot be used; ends the message. */
  readonly remedy: string;
};

/**
 * Returns a name for each path: its last segment, if that is a valid name; else the segment in capitals, with `_` for
 * characters that a name cannot have. By path, all segments within the folder make the name: `db1/password` becomes
 * `DB1_PASSWORD`. @throws CommandFailure usage or conflict, with every path concerned and the remedy
 */
export function namesFor(paths: readonly string[], { naming, folder, taken, remedy }: NameRules): Named[] {
  const variableName = (path: string) =>
    nameFrom(naming === "path" ? path.slice(folder.length) : path.slice(path.lastIndexOf("/") + 1));
  const named = paths.map((path) => ({ name: variableName(path), path })).filter(({ name }) => !taken.has(name));
  const unusable = named.filter(({ name }) => !isVariableName(name));
  if (unusable.length > 0) {
    const rows = unusable.map(({ name, path }) => `${printable(path)} would be ${name}`);
    throw new CommandFailure("usage", `a variable name starts with a letter or _: ${rows.join("; ")}: ${remedy}`);
  }
  const steering = named.filter(({ name }) => steersPrograms(name) || isShellName(name));
  if (steering.length > 0) {
    const rows = steering.map(({ name, path }) => `${printable(path)} would set ${name}`);
    throw new CommandFailure("usage", `${rows.join("; ")}, which changes how programs run: ${remedy}`);
  }
  const rows = [...byName(named)].filter(([, paths]) => paths.length > 1);
  if (rows.length === 0) return named;
  const clashes = rows.map(([name, paths]) => `${paths.map(printable).join(" and ")} would all be ${name}`);
  throw new CommandFailure("conflict", `${clashes.join("; ")}: ${remedy}`);
}

function nameFrom(text: string): string {
  return isVariableName(text) ? text : text.toUpperCase().replace(/[^A-Z0-9_]/gu, "_");
}

function byName(named: readonly Named[]): Map<string, string[]> {
  const paths = new Map<string, string[]>();
  for (const { name, path } of named) paths.set(name, [...(paths.get(name) ?? []), path]);
  return paths;
}

/** Returns the text as one word of a shell, in single quotes, in which nothing is special. */
function shellQuote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * Returns the lines that set and export a variable. The name must be valid, and the value without NUL. DANGER: a shell
 * evaluates what is assigned to an integer as arithmetic, which may run code: `unset` takes that attribute away.
 */
export function exportLines(name: string, value: string): string {
  return `unset ${name}\nexport ${name}=${shellQuote(value)}\n`;
}
