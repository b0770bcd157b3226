/** Directories of the XDG base directory specification. */
import { isAbsolute } from "node:path";

type Environment = Readonly<Record<string, string | undefined>>;

type XdgVariable = "XDG_DATA_HOME" | "XDG_CONFIG_HOME" | "XDG_STATE_HOME" | "XDG_RUNTIME_DIR";

/** Returns the directory that the variable names; undefined for a relative path, which the specification says to ignore. */
export function xdgDirectory(environment: Environment, variable: XdgVariable): string | undefined {
  const given = environment[variable];
  return given !== undefined && isAbsolute(given) ? given : undefined;
}
