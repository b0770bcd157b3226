/** Where a server listens: its port, its Unix socket, and the announcement of both. */
import { chmod } from "node:fs/promises";
import { isLoopback } from "../access/lockout.js";
import type { Settings } from "../config/definitions.js";
import { StartError, systemCode } from "../errors.js";
import type { MessageClasses } from "../http/app.js";
import {
  createListener,
  createLocalListener,
  type Drainable,
  defaultLimits,
  type Listener,
  listen,
  listenLocally,
} from "../http/listener.js";
import type { Log } from "../log.js";
import type { Announcement } from "../storage/files/claim.js";
import type { Certificate } from "./certificate.js";
import type { ClaimedStore } from "./open-store.js";
import type { CompleteSurroundings } from "./server-handle.js";
import type { SocketPlace } from "./socket-place.js";

export type Listeners = { readonly secure: Listener; readonly local: Drainable };

export function createListeners(
  certificate: Certificate,
  messages: MessageClasses,
  { maxConnections }: Settings,
  { limits, log }: CompleteSurroundings,
): Listeners {
  const all = { ...defaultLimits, ...limits, maxConnections };
  return { secure: createListener(certificate, messages, log, all), local: createLocalListener(messages, all) };
}

/** @throws StartError when the port cannot be had. */
export async function listenOnPort({ secure }: Listeners, { host, port }: Settings, log: Log) {
  const found = await listen(secure, host, port);
  if (!isLoopback(found.address)) log.warn({ event: "not-loopback", hint: "other machines can reach the vault" });
  return found;
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

export function urlOf(address: string, port: number): string {
  if (["127.0.0.1", "0.0.0.0", "::"].includes(address)) return `https://localhost:${port}`;
  return `https://${address.includes(":") ? `[${address}]` : address}:${port}`;
}
