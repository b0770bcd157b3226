/** Owns the service on a claimed vault: puts the rooms together, and takes them apart in order at the end. */
import { setTimeout as sleep } from "node:timers/promises";
import { digestToken, findToken } from "../access/root-token.js";
import { systemClock } from "../clock.js";
import type { Settings } from "../config/definitions.js";
import { openApiDocument } from "../contract/document.js";
import { systemFiles } from "../files/durable.js";
import { type Home, hintsOnNamedFiles } from "../files/home.js";
import { createApp, type Handler } from "../http/app.js";
import { createMessageClasses } from "../http/express-prototypes.js";
import { isLoopback } from "../http/host-guard.js";
import { createListener, defaultLimits, drain, listen } from "../http/listener.js";
import type { Log } from "../log.js";
import { readManifest } from "../manifest.js";
import type { FileStore } from "../storage/files/file-store.js";
import { removeTemps } from "../storage/files/tree-scan.js";
import { Vault } from "../vault/vault.js";
import { findCertificate } from "./certificate.js";
import { openOrRelease } from "./release.js";
import type { Strongroom, Surroundings } from "./server-handle.js";

const drainMs = 5_000;

/** The claim on the vault is held from here on: nothing else in the home is written before it. */
export async function serveStore(
  store: FileStore,
  home: Home,
  settings: Settings,
  { log, clock = systemClock, limits, minScryptLogN }: Surroundings,
): Promise<Strongroom> {
  for (const directory of [home.path, home.tls]) await removeTemps(systemFiles, directory);
  const token = await findToken(settings, home);
  const certificate = await findCertificate(settings, home, clock);
  if (certificate.made) log.info({ event: "certificate-made", hint: "clients must trust the new certificate file" });
  for (const hint of await hintsOnNamedFiles(settings)) log.warn({ event: "not-hardened", hint });
  if (store.madeSecrets)
    log.warn({ event: "secrets-missing", hint: "an empty directory was made: had it secrets, they are gone" });
  if (store.foreignFiles > 0) log.warn({ event: "foreign-files", count: store.foreignFiles, hint: "left alone" });
  const stopper = createStopper();
  const messages = createMessageClasses();
  let handle: Handler = () => {};
  const { maxConnections } = settings;
  const listenerLimits = { ...defaultLimits, ...limits, maxConnections };
  const listener = createListener(certificate, messages, (req, res) => handle(req, res), log, listenerLimits);
  const vault = await Vault.open(store, { ...settings, ...(minScryptLogN && { minScryptLogN }) }, clock, log);
  const { address, port } = await openOrRelease(vault, () => listen(listener, settings.host, settings.port));
  if (!isLoopback(address)) log.warn({ event: "not-loopback", hint: "other machines can reach the vault" });
  const service = {
    vault,
    log,
    maxBodyBytes: 6 * settings.maxValueBytes + 64 * 1024,
    contract: Buffer.from(JSON.stringify(openApiDocument(readManifest(), settings))),
    port,
    isShuttingDown: () => stopper.begun(),
    shutDown: () => void stopper.stop(),
  };
  handle = createApp(service, { ...settings, address, tokenDigest: digestToken(token.text) }, clock, messages);
  stopper.does(async () => {
    log.info({ event: "stopping" });
    const ends = within(drainMs, Promise.allSettled([vault.close(), drain(listener, drainMs)]));
    for (const end of (await ends) ?? []) {
      if (end.status === "rejected") log.error({ event: "stop-failed", error: end.reason });
    }
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

/** Waits for the work, but not longer: a disk that hangs must not keep the process. */
async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  const limit = new AbortController();
  const result = await Promise.race([work, sleep(ms, undefined, { signal: limit.signal }).catch(() => undefined)]);
  limit.abort();
  return result;
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
