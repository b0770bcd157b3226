/** Home directory of a user, and of the vault in it. */
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the user's home directory: `HOME` where the system has that variable, else what the system knows. */
export function homeDirectory(environment: Environment, platform: string = process.platform): string {
  return (platform === "win32" ? "" : environment["HOME"]) || homedir();
}

/** Returns the server's home directory, unless a setting names another: the user's data directory for strongroom. */
export function defaultHome(environment: Environment, platform: string = process.platform): string {
  const home = homeDirectory(environment, platform);
  if (platform === "darwin") return join(home, "Library", "Application Support", "strongroom");
  if (platform === "win32") {
    return join(environment["LOCALAPPDATA"] || join(home, "AppData", "Local"), "strongroom", "Data");
  }
  const { XDG_DATA_HOME: given = "" } = environment;
  return join(isAbsolute(given) ? given : join(home, ".local", "share"), "strongroom"); // XDG: relative ones are ignored
}
