/** Owns a whole running server: puts the rooms together at start, and takes them apart in order at the end. */
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type Clock, systemClock } from "../clock.js";
import type { Settings } from "../config/settings.js";
import { createApp } from "../http/app.js";
import { digestToken } from "../http/bearer.js";
import { isLoopback } from "../http/guard.js";
import { createListener, drain, listen } from "../http/listener.js";
import type { Log } from "../log.js";
import { type FileOperations, systemFiles } from "../storage/durable.js";
import { FileStore } from "../storage/file-store.js";
import { Vault } from "../vault/vault.js";
import { findCertificate } from "./certificate.js";
import { openHome } from "./home.js";
import { findToken } from "./token.js";

const drainMs = 5_000;

/** What tests replace. */
export type Surroundings = { readonly log: Log; readonly clock?: Clock; readonly files?: FileOperations };

export interface Strongroom {
  readonly url: string;
  readonly port: number;
  readonly tokenSource: string;
  readonly certificateFile: string;
  readonly vaultPath: string;
  /** Resolves once the server has stopped, for whatever reason. */
  readonly stopped: Promise<void>;
  /** Locks, drains for at most 5 s, stops; the same promise however often it is asked. */
  stop(): Promise<void>;
}

/** @throws StartError that says what to mend. */
export async function startStrongroom(settings: Settings, surroundings: Surroundings): Promise<Strongroom> {
  const { log, clock = systemClock, files = systemFiles } = surroundings;
  const home = await openHome(settings.home);
  const token = await findToken(settings, home);
  const certificate = await findCertificate(settings, home, clock);
  if (certificate.made) log.info({ event: "certificate-made", hint: "clients must trust the new certificate file" });
  if (!isLoopback(settings.host)) log.warn({ event: "not-loopback", hint: "other machines can reach the vault" });
  const store = await FileStore.open(home.vault, files);
  if (store.strangers > 0) log.warn({ event: "foreign-files", count: store.strangers, hint: "left alone" });
  const vault = await openOrRelease(store, () => Vault.open(store, settings, clock, log));
  const stopper = createStopper();
  let address: AddressInfo | null = null;
  const service = {
    vault,
    log,
    maxBodyBytes: 6 * settings.maxValueBytes + 64 * 1024,
    port: () => address?.port ?? settings.port,
    isShuttingDown: () => stopper.begun(),
    shutDown: () => void stopper.stop(),
  };
  const app = createApp(service, { ...settings, tokenDigest: digestToken(token.text) }, clock);
  const server = createListener(certificate, app);
  address = await openOrRelease(vault, () => listen(server, settings.host, settings.port));
  stopper.does(async () => {
    log.info({ event: "stopping" });
    await within(drainMs, Promise.all([vault.close(), drain(server, drainMs)]));
    log.info({ event: "stopped" });
  });
  return {
    url: urlOf(settings.host, address.port),
    port: address.port,
    tokenSource: token.source,
    certificateFile: certificate.file,
    vaultPath: home.vault,
    stopped: stopper.stopped,
    stop: stopper.stop,
  };
}

/** Closes what was opened before when the next step of the start fails. */
async function openOrRelease<T>(opened: { close(): Promise<void> }, next: () => Promise<T>): Promise<T> {
  try {
    return await next();
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** Waits for the work, but not longer: a disk that hangs must not keep the process. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const limit = new AbortController();
  await Promise.race([work, sleep(ms, undefined, { signal: limit.signal }).catch(() => {})]);
  limit.abort();
}

/** One stop, whoever asks first: the endpoint, a signal, a test. */
function createStopper() {
  let begun = false;
  let work: () => Promise<void> = async () => {};
  let settle: (ended: Promise<void>) => void = () => {};
  const stopped = new Promise<void>((resolve) => {
    settle = resolve;
  });
  const stop = (): Promise<void> => {
    if (begun) return stopped;
    begun = true;
    settle(work());
    return stopped;
  };
  const does = (next: () => Promise<void>): void => {
    work = next;
  };
  return { begun: () => begun, does, stop, stopped };
}

function urlOf(host: string, port: number): string {
  const name = isLoopback(host) ? "localhost" : host.includes(":") ? `[${host}]` : host;
  return `https://${name}:${port}`;
}
