/** Paths hidden from a program in the sandbox: all that give access to the vault, and other programs' sockets. */
import { lstatSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { defaultHome } from "../../client/default-home.js";
import { announcedFiles } from "../../client/discovery.js";
import { readOneSetting } from "../../config/settings.js";
import { homeAt } from "../../files/home.js";
import { settingsFileIn } from "../kit/args/start-settings.js";
import type { Io } from "../kit/io.js";
import { isWithin } from "./path-walk.js";
import { makeAllowedDirectory } from "./project.js";

/** `isKept`: also where it does not exist yet, it must not be made. */
export type Hidden = { readonly path: string; readonly kind: "directory" | "file"; readonly isKept: boolean };

/** Where the vault and its token are, as the command's flags say. */
export type Place = { readonly home?: string | undefined; readonly tokenFile?: string | undefined };

/** @param writable directories that the program can change */
export async function hiddenPaths(io: Io, place: Place, writable: readonly string[]): Promise<readonly Hidden[]> {
  const environment = io.env;
  const home = readOneSetting("home", place.home, environment);
  const file = await settingsFileIn(home);
  const read = (name: "tokenFile" | "tlsKey" | "storePasswordFile", given?: string) =>
    readOneSetting(name, given, environment, file) ?? "";
  const named = readOneSetting("socket", undefined, environment, file);
  const files = [
    ...[homeAt(home).token, homeAt(home).privateKey, homeAt(home).socket],
    ...[read("tokenFile", place.tokenFile), read("tokenFile"), read("tlsKey"), read("storePasswordFile")],
    ...[environment["PGPASSFILE"] ?? "", join(io.homeDirectory(), ".pgpass"), join(io.homeDirectory(), ".vault-token")],
    ...[named === "off" ? "" : (named ?? ""), ...(await announcedFiles(home).catch(() => []))],
  ];
  const usualHome = defaultHome({ HOME: io.homeDirectory() }); // an earlier vault may be there, whatever the variables name now
  const directories = [
    ...[home, defaultHome(environment), exists(usualHome) ? usualHome : "", environment["XDG_RUNTIME_DIR"] ?? ""],
    await makeAllowedDirectory(io).catch(() => ""),
  ];
  return [
    ...directories.filter((path) => path !== "").map((path) => kept(path, "directory")),
    ...files.filter((path) => path !== "").map((path) => kept(path, "file")),
    ...sshAgent(io, writable),
    ...openSockets().map((path) => socketOrDirectory(path, writable)),
  ];
}

function kept(path: string, kind: Hidden["kind"]): Hidden {
  return { path: resolve(path), kind, isKept: true };
}

/** The agent's directory has other sockets and often keys; a directory where the program works cannot be hidden. */
function sshAgent(io: Io, writable: readonly string[]): readonly Hidden[] {
  const { SSH_AUTH_SOCK: socket = "" } = io.env;
  if (socket === "" || !exists(socket)) return [];
  const directory = dirname(resolve(socket));
  const isShared =
    [io.homeDirectory(), ...writable].some((path) => isWithin(path, directory)) || isWithin("/tmp", directory);
  return [isShared ? kept(socket, "file") : kept(directory, "directory")];
}

/** Returns the Unix sockets of this network namespace that have a path. */
function openSockets(): string[] {
  try {
    const lines = readFileSync("/proc/net/unix", "utf8").split("\n").slice(1);
    const paths = lines.map((line) => line.split(/ +/).slice(7).join(" ")).filter((path) => path.startsWith("/"));
    return [...new Set(paths)].filter(exists);
  } catch {
    return [];
  }
}

const shared = ["/var", "/var/lib", "/var/spool", "/var/cache", "/var/opt"];

/** A service makes its socket again when it restarts: below /var its directory is hidden, which is the service's own. */
function socketOrDirectory(path: string, writable: readonly string[]): Hidden {
  const directory = dirname(path);
  const isShared = shared.includes(directory) || writable.some((each) => isWithin(each, directory));
  if (isWithin(path, "/var") && !isShared) {
    return { path: directory, kind: "directory", isKept: false };
  }
  return { path, kind: "file", isKept: false };
}

function exists(path: string): boolean {
  try {
    return lstatSync(path) !== undefined;
  } catch {
    return false;
  }
}
