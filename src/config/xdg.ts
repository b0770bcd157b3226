/** Directories of the XDG base directory specification. */
import { isAbsolute } from "node:path";

type XdgVariable = "XDG_DATA_HOME" | "XDG_CONFIG_HOME" | "XDG_STATE_HOME" | "XDG_RUNTIME_DIR";

/** Returns the directory that the variable names; undefined for a relative path, which the specification says to ignore. */
export function xdgDirectory(variable: XdgVariable): string | undefined {
  const given = process.env[variable];
  return given !== undefined && isAbsolute(given) ? given : undefined;
}
