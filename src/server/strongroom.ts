/** Owns a whole running server: puts the rooms together at start, and takes them apart in order at the end. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Clock, systemClock } from "../clock.js";
import type { Settings } from "../config/settings.js";
import { StartError, systemCode } from "../errors.js";
import { createApp, type Handler } from "../http/app.js";
import { digestToken } from "../http/bearer.js";
import { isLoopback } from "../http/guard.js";
import { createListener, drain, listen } from "../http/listener.js";
import type { Log } from "../log.js";
import { type FileOperations, systemFiles } from "../storage/durable.js";
import { FileStore } from "../storage/file-store.js";
import { removeTemps } from "../storage/tree.js";
import { Vault } from "../vault/vault.js";
import { findCertificate } from "./certificate.js";
import { type Home, openHome } from "./home.js";
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
  try {
    const home = await openHome(settings.home);
    const store = await FileStore.open(home.vault, surroundings.files ?? systemFiles);
    return await openOrRelease(store, () => serveStore(store, home, settings, surroundings));
  } catch (error) {
    throw startErrorFor(error);
  }
}

/** The claim on the vault is held from here on: nothing else in the home is written before it. */
async function serveStore(
  store: FileStore,
  home: Home,
  settings: Settings,
  { log, clock = systemClock }: Surroundings,
): Promise<Strongroom> {
  for (const directory of [home.path, home.tls]) await removeTemps(systemFiles, directory);
  const token = await findToken(settings, home);
  const certificate = await findCertificate(settings, home, clock);
  if (certificate.made) log.info({ event: "certificate-made", hint: "clients must trust the new certificate file" });
  if (store.strangers > 0) log.warn({ event: "foreign-files", count: store.strangers, hint: "left alone" });
  const stopper = createStopper();
  let handle: Handler = () => {};
  const server = createListener(certificate, (req, res) => handle(req, res), log);
  const vault = await Vault.open(store, settings, clock, log);
  const { address, port } = await openOrRelease(vault, () => listen(server, settings.host, settings.port));
  if (!isLoopback(address)) log.warn({ event: "not-loopback", hint: "other machines can reach the vault" });
  const service = {
    vault,
    log,
    maxBodyBytes: 6 * settings.maxValueBytes + 64 * 1024,
    port,
    isShuttingDown: () => stopper.begun(),
    shutDown: () => void stopper.stop(),
  };
  handle = createApp(service, { ...settings, address, tokenDigest: digestToken(token.text) }, clock);
  stopper.does(async () => {
    log.info({ event: "stopping" });
    await within(drainMs, Promise.all([vault.close(), drain(server, drainMs)]));
    log.info({ event: "stopped" });
  });
  const url = urlOf(address, port);
  await announce(store, url, log);
  const { stopped, stop } = stopper;
  const { source: tokenSource } = token;
  const { file: certificateFile } = certificate;
  return { url, port, tokenSource, certificateFile, vaultPath: home.vault, stopped, stop };
}

/** A disk that cannot take it, a full one for instance, is no reason not to serve. */
async function announce(store: FileStore, url: string, log: Log): Promise<void> {
  try {
    await store.announce(url);
  } catch (error) {
    log.warn({ event: "not-announced", error, hint: "commands that look for this server will not find its address" });
  }
}

/** A file operation that nobody foresaw to fail still says which file it was. */
function startErrorFor(error: unknown): unknown {
  const code = systemCode(error);
  if (error instanceof StartError || code === undefined) return error;
  const path = error instanceof Error && "path" in error ? String(error.path) : "a file";
  return new StartError(`${path} cannot be used (${code}): see that it is yours and as it should be, then start again`);
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

function urlOf(address: string, port: number): string {
  if (["127.0.0.1", "0.0.0.0", "::"].includes(address)) return `https://localhost:${port}`;
  return `https://${address.includes(":") ? `[${address}]` : address}:${port}`;
}
