/** Service on a claimed vault: connects vault, application and listener, and stops them in order. */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { isLoopback } from "../access/address.js";
import { digestToken, findToken } from "../access/root-token.js";
import { systemClock } from "../clock.js";
import type { Settings } from "../config/definitions.js";
import { openApiDocument } from "../contract/document.js";
import { systemFiles } from "../files/durable.js";
import { type Home, hintsOnNamedFiles } from "../files/home.js";
import { createApp } from "../http/app.js";
import { createMessageClasses } from "../http/express-prototypes.js";
import { createListener, defaultLimits, drain, handleRequests, type Listener, listen } from "../http/listener.js";
import type { Log } from "../log.js";
import { readManifest } from "../manifest.js";
import type { FileStore } from "../storage/files/file-store.js";
import { removeTemps } from "../storage/files/tree-scan.js";
import { Vault } from "../vault/vault.js";
import { findCertificate } from "./certificate.js";
import { openOrRelease } from "./release.js";
import type { Strongroom, Surroundings } from "./server-handle.js";

const drainMs = 5_000;

/** Requires the claim on the vault: nothing else in the home is written before it. */
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
  warnOfOddFiles(store, log);
  const messages = createMessageClasses();
  const listenerLimits = { ...defaultLimits, ...limits, maxConnections: settings.maxConnections };
  const listener = createListener(certificate, messages, log, listenerLimits);
  const vaultSettings = { ...settings, ...(minScryptLogN && { minScryptLogN }) };
  const vault = await Vault.open({ store, settings: vaultSettings, clock, log });
  const { address, port } = await openOrRelease(vault, () => listen(listener, settings.host, settings.port));
  if (!isLoopback(address)) log.warn({ event: "not-loopback", hint: "other machines can reach the vault" });
  const { isStopping, stop, stopped } = createStopper(() => stopServing(vault, listener, log));
  const service = {
    vault,
    log,
    maxBodyBytes: 6 * settings.maxValueBytes + 64 * 1024,
    contract: Buffer.from(JSON.stringify(openApiDocument(readManifest(), settings))),
    port,
    isShuttingDown: isStopping,
    shutDown: () => void stop(),
  };
  const appSettings = { ...settings, address, tokenDigest: digestToken(token.text) };
  handleRequests(listener, createApp(service, appSettings, clock, messages));
  const url = urlOf(address, port);
  await announce(store, url, log);
  const { source: tokenSource } = token;
  const { file: certificateFile } = certificate;
  return { url, port, tokenSource, certificateFile, vaultPath: home.vault, stopped, stop };
}

function warnOfOddFiles({ madeSecrets, foreignFiles }: FileStore, log: Log): void {
  const missing = "the directory of the secrets was missing and an empty one was made: secrets in it are lost";
  if (madeSecrets) log.warn({ event: "secrets-missing", hint: missing });
  if (foreignFiles > 0) log.warn({ event: "foreign-files", count: foreignFiles, hint: "not touched" });
}

/** A disk that cannot take the file, a full one for instance, does not prevent serving. */
async function announce(store: FileStore, url: string, log: Log): Promise<void> {
  try {
    await store.announce(url);
  } catch (error) {
    log.warn({ event: "not-announced", error, hint: "commands that look for this server will not find its address" });
  }
}

async function stopServing(vault: Vault, listener: Listener, log: Log): Promise<void> {
  log.info({ event: "stopping" });
  const ends = within(drainMs, Promise.allSettled([vault.close(), drain(listener, drainMs)]));
  for (const end of (await ends) ?? []) {
    if (end.status === "rejected") log.error({ event: "stop-failed", error: end.reason });
  }
  log.info({ event: "stopped" });
}

/** Waits for the work at most this long: a disk that hangs must not keep the process alive. */
async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  const limit = new AbortController();
  const result = await Promise.race([work, sleep(ms, undefined, { signal: limit.signal }).catch(() => undefined)]);
  limit.abort();
  return result;
}

/** Stops once, whether the endpoint, a signal or a test asks first. */
function createStopper(work: () => Promise<void>) {
  const request = new AbortController();
  const stopped = once(request.signal, "abort").then(work);
  const stop = (): Promise<void> => {
    request.abort();
    return stopped;
  };
  return { isStopping: () => request.signal.aborted, stop, stopped };
}

function urlOf(address: string, port: number): string {
  if (["127.0.0.1", "0.0.0.0", "::"].includes(address)) return `https://localhost:${port}`;
  return `https://${address.includes(":") ? `[${address}]` : address}:${port}`;
}
