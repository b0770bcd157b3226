/** Where a server listens: its port, its Unix socket, and the announcement of both. */
import { readFileSync } from "node:fs";
import { chmod, lstat, stat, unlink } from "node:fs/promises";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { isLoopback } from "../access/lockout.js";
import type { Settings } from "../config/definitions.js";
import { maxSocketPathBytes } from "../config/readers.js";
import type { ClaimedStore } from "../engines/engine.js";
import { StartError, systemCode } from "../errors.js";
import { ignoring, missingAsNull } from "../files/durable.js";
import { type Home, quoted, refuseReplaceable } from "../files/home.js";
import type { Api } from "../http/adapter.js";
import { createMessageClasses, type MessageClasses } from "../http/app.js";
import {
  createListener,
  createLocalListener,
  type Drainable,
  defaultLimits,
  type Listener,
  listen,
  listenLocally,
  maxLocalConnections,
} from "../http/listener.js";
import type { Log } from "../log.js";
import type { Announcement } from "../storage/files/claim.js";
import type { Certificate } from "./certificate.js";
import type { AllDependencies } from "./server-handle.js";

/** `forVault`: of the API for Vault's clients; null while it is off. */
export type Listeners = {
  readonly messages: MessageClasses;
  readonly secure: Listener;
  readonly local: Drainable;
  readonly forVault: VaultListener | null;
};

export async function createListeners(
  certificate: Certificate,
  settings: Settings,
  { limits, log }: AllDependencies,
): Promise<Listeners> {
  const { maxConnections, vaultPort } = settings;
  const places = connectionPlaces(settings);
  if (places.secure < maxConnections) {
    const hint = `the limit of open files leaves room for ${places.secure}: raise it (ulimit -n, LimitNOFILE of a service)`;
    log.warn({ event: "fewer-connections", hint });
  }
  const all = { ...defaultLimits, ...limits, maxConnections: places.secure };
  const messages = createMessageClasses();
  const secure = createListener(certificate, messages, log, all);
  const forVault = vaultPort === null ? null : await createVaultListener(certificate, log, all);
  const local = createLocalListener(messages, { ...all, maxConnections: places.local });
  return { messages, secure, local, forVault };
}

/** Descriptors of the program itself, and what of the others connections may take: the vault's files need the rest. */
const ownDescriptors = 64;
const shareOfConnections = 3 / 4;
const fewestPlaces = 8;

/**
 * Returns the most connections of each listener on TCP, the broker's included, and of the one on the Unix socket. A connection of
 * the broker takes two descriptors: its upstream's is the other.
 */
export function connectionPlaces({ maxConnections, vaultPort, brokerPort }: Settings) {
  const all = Math.max(0, descriptorLimit() - ownDescriptors) * shareOfConnections;
  const listeners = 1 + (vaultPort === null ? 0 : 1) + (brokerPort === null ? 0 : 2);
  const local = Math.max(fewestPlaces, Math.min(maxLocalConnections, Math.floor(all / 4)));
  const secure = Math.max(fewestPlaces, Math.min(maxConnections, Math.floor((all - local) / listeners)));
  return { local, secure };
}

/** How many files the process may have open, as Linux says it. Node has raised the soft limit to the hard one. */
function descriptorLimit(): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1")) ?? [];
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** `routes`: the patterns of its endpoints. */
type VaultListener = {
  readonly api: Api;
  readonly routes: readonly string[];
  readonly listener: Listener;
  readonly messages: MessageClasses;
};

/** Its code is loaded only where it is on: it costs the others neither time nor memory. */
async function createVaultListener(
  certificate: Certificate,
  log: Log,
  limits: Parameters<typeof createListener>[3],
): Promise<VaultListener> {
  const { vaultApi: api } = await import("../vault-api/api.js");
  const messages = createMessageClasses();
  const dialect = { takesList: true, errors: api.errors };
  const listener = createListener(certificate, messages, log, limits, dialect);
  return { api, routes: api.table.patterns, listener, messages };
}

/** Returns the address, and the ports as they were found. @throws StartError when one cannot be had. */
export async function listenOnPorts({ secure, forVault }: Listeners, { host, port, vaultPort }: Settings, log: Log) {
  const other = forVault && (await listen(forVault.listener, host, vaultPort ?? 0, "--vault-port"));
  const found = await listen(secure, host, port);
  if (!isLoopback(found.address)) log.warn({ event: "not-loopback", hint: "other machines can reach the vault" });
  return { address: found.address, port: found.port, vaultPort: other?.port ?? null };
}

/** Returns the socket's path once it accepts connections. A file system without sockets does not prevent serving. */
export async function listenOnSocket({ local }: Listeners, place: SocketPlace | null, log: Log) {
  if (place === null) return null;
  try {
    await listenLocally(local, place.path);
    await chmod(place.path, 0o600);
    return place.path;
  } catch (error) {
    if (place.chosen) throw new StartError(`cannot listen on ${place.path} (${systemCode(error)}): change --socket`);
    const hint = "the home's file system takes no Unix socket: choose another --socket";
    log.warn({ event: "no-socket", error, hint });
    return null;
  }
}

/** A disk that cannot take the file, a full one for instance, does not prevent serving. */
export async function announce(opened: ClaimedStore, announcement: Announcement, log: Log): Promise<void> {
  try {
    await opened.announce(announcement);
  } catch (error) {
    log.warn({ event: "not-announced", error, hint: "commands that look for this server will not find its address" });
  }
}

export function serverUrl(address: string, port: number): string {
  if (["127.0.0.1", "0.0.0.0", "::"].includes(address)) return `https://localhost:${port}`;
  return `https://${address.includes(":") ? `[${address}]` : address}:${port}`;
}

/** `chosen`: by a setting, so that a problem with it ends the start. */
type SocketPlace = { readonly path: string; readonly chosen: boolean };

/**
 * Returns where to listen, free of an earlier socket; null when the socket is turned off, or the home's path is too long
 * for one, which is logged.
 * @throws StartError when the place cannot be used.
 */
export async function findSocketPlace({ socket }: Settings, home: Home, log: Log): Promise<SocketPlace | null> {
  if (socket === "off" || process.platform === "win32") return null; // Windows has no modes to keep other users out
  const path = socket ?? home.socket;
  if (Buffer.byteLength(path) > maxSocketPathBytes) {
    const hint = "the home's path is too long for a Unix socket: choose its path with --socket, or set --no-socket";
    log.warn({ event: "no-socket", hint });
    return null;
  }
  await prepareSocket(path, "--socket");
  return { path, chosen: socket !== null };
}

/** Makes the place free of an earlier socket. `flag` names it. @throws StartError when the place cannot be used */
export async function prepareSocket(path: string, flag: string): Promise<void> {
  await refuseSharedDirectory(dirname(path), flag);
  await removeStaleSocket(path, flag);
}

/** Clients trust what listens there, so no other user may be able to put a socket of theirs in its place. */
async function refuseSharedDirectory(directory: string, flag: string): Promise<void> {
  const found = await missingAsNull(stat(directory));
  if (!found?.isDirectory()) throw new StartError(`${directory} is not a directory: create it, or change ${flag}`);
  if (found.uid === process.getuid?.() && (found.mode & 0o022) === 0)
    return refuseReplaceable(join(directory, "socket"));
  throw new StartError(
    `other users can write to ${directory}: choose a directory of your own for ${flag}, or run  chmod go-w ${quoted(directory)}`,
  );
}

async function removeStaleSocket(path: string, flag: string): Promise<void> {
  const found = await missingAsNull(lstat(path));
  if (found === null) return;
  if (!found.isSocket()) throw new StartError(`${path} is not a socket: move it away, then start again`);
  if (await isListening(path)) throw new StartError(`another server listens on ${path}: choose another with ${flag}`);
  await ignoring(unlink(path), "ENOENT");
}

function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => resolve(true)).once("error", (error) => resolve(systemCode(error) === "EAGAIN"));
    socket.once("connect", () => socket.destroy());
  });
}
