/** Service on a claimed vault: connects vault, application and listener, and stops them in order. */
import { once } from "node:events";
import { chmod } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { isLoopback } from "../access/address.js";
import { ClientTokens } from "../access/client-tokens.js";
import { Credentials } from "../access/credentials.js";
import { RootRotation } from "../access/root-rotation.js";
import { findToken } from "../access/root-token.js";
import { routes } from "../access/scopes.js";
import { systemClock } from "../clock.js";
import type { Settings } from "../config/definitions.js";
import { openApiDocument } from "../contract/document.js";
import { StartError, systemCode } from "../errors.js";
import { systemFiles } from "../files/durable.js";
import { type Home, hintsOnNamedFiles } from "../files/home.js";
import { createApp } from "../http/app.js";
import { createMessageClasses } from "../http/express-prototypes.js";
import { createListener, type Drainable, defaultLimits, drain, handleRequests, listen } from "../http/listener.js";
import { createLocalListener, listenLocally } from "../http/local-listener.js";
import type { Log } from "../log.js";
import { readManifest } from "../manifest.js";
import { measuredStore } from "../metrics/measured-store.js";
import { ServerMetrics } from "../metrics/server-metrics.js";
import { Observers } from "../observer.js";
import type { Announcement } from "../storage/files/claim-holder.js";
import { removeTemps } from "../storage/files/tree-scan.js";
import type { ClaimedStore } from "../storage/open-store.js";
import { refuseUnfinished } from "../storage/unfinished-vault.js";
import { Vault } from "../vault/vault.js";
import { findCertificate } from "./certificate.js";
import { openOrRelease } from "./release.js";
import { type Strongroom, type Surroundings, stopMs } from "./server-handle.js";
import { findSocketPlace, type SocketPlace } from "./socket-place.js";

/** How long a stop waits for running requests, so that the audit log has them, in milliseconds. */
const lastRecordsMs = 1_000;

/** Requires the claim on the vault: nothing else in the home is written before it. */
export async function serveStore(
  opened: ClaimedStore,
  home: Home,
  settings: Settings,
  { log, clock = systemClock, files = systemFiles, limits, minScryptLogN, observer }: Surroundings,
): Promise<Strongroom> {
  const { store } = opened;
  for (const directory of [home.path, home.tls]) await removeTemps(systemFiles, directory);
  const token = await findToken(settings, home);
  const certificate = await findCertificate(settings, home, clock);
  if (certificate.made) log.info({ event: "certificate-made", hint: "clients must trust the new certificate file" });
  for (const hint of await hintsOnNamedFiles(settings)) log.warn({ event: "not-hardened", hint });
  await refuseUnfinished(store);
  const place = await findSocketPlace(settings, home, log);
  const messages = createMessageClasses();
  const allLimits = { ...defaultLimits, ...limits, maxConnections: settings.maxConnections };
  const listener = createListener(certificate, messages, log, allLimits);
  const local = createLocalListener(messages, allLimits);
  const vaultSettings = { ...settings, ...(minScryptLogN && { minScryptLogN }) };
  const observers = new Observers(log);
  const metrics = new ServerMetrics(routes, clock);
  observers.add(metrics);
  if (observer !== undefined) observers.add(observer);
  const audit =
    settings.audit === "off"
      ? null
      : (await import("../audit/open-audit.js")).openAudit(home.path, settings, { files, clock, log });
  if (audit !== null) observers.add(audit);
  const measured = measuredStore(store, observers);
  const vault = await Vault.open({ store: measured, settings: vaultSettings, clock, log, observers });
  const credentials = new Credentials(token.text, clock);
  const tokens = await ClientTokens.open({ vault: vault.records, credentials, clock, log });
  vault.setKeeper(tokens);
  audit?.setSigner((text) => vault.records.signCheckpoint(text));
  const { address, port } = await openOrRelease(vault, () => listen(listener, settings.host, settings.port));
  if (!isLoopback(address)) log.warn({ event: "not-loopback", hint: "other machines can reach the vault" });
  const { isStopping, stop, stopping, stopped } = createStopper(() => {
    observers.vaultEvent({ event: "stop", at: clock.now() });
    const drained = Promise.all([listener, local].map((each) => drain(each, stopMs)));
    const lastRecords = () => within(lastRecordsMs, drained).then(() => audit?.close());
    return stopServing([vault.close(lastRecords).finally(opened.release), drained], log);
  });
  const manifest = readManifest();
  const figures = async () => {
    const [{ version }, { idleTimeoutMs }] = [manifest, settings];
    const losses = audit?.losses ?? null;
    return { ...(await vault.report.figures()), version, idleTimeoutMs, tokens: tokens.count, losses };
  };
  const service = {
    vault,
    log,
    credentials,
    tokens,
    audit,
    rootRotation: new RootRotation(token, credentials, clock),
    maxBodyBytes: 6 * settings.maxValueBytes + 64 * 1024,
    maxBatchBytes: settings.maxBatchBytes,
    contract: Buffer.from(JSON.stringify(openApiDocument(manifest, settings))),
    scrape: async () => metrics.scrape(await figures()),
    version: manifest.version,
    port,
    isShuttingDown: isStopping,
    shutDown: () => void stop(),
  };
  const app = createApp(service, { ...settings, address }, clock, messages, observers);
  for (const each of [listener, local]) handleRequests(each, app);
  const socket = await openOrRelease({ close: stop }, () => listenOnSocket(local, place, log));
  const url = urlOf(address, port);
  await announce(opened, { url, socket: place?.chosen ? socket : null }, log);
  observers.vaultEvent({ event: "start", at: clock.now() });
  const [tokenSource, certificateFile] = [token.source, certificate.file];
  return {
    url,
    port,
    socket,
    tokenSource,
    certificateFile,
    vaultPath: store.vaultPath,
    lock: () => vault.lock(),
    stopping,
    stopped,
    stop,
  };
}

/** A disk that cannot take the file, a full one for instance, does not prevent serving. */
async function announce(opened: ClaimedStore, announcement: Announcement, log: Log): Promise<void> {
  try {
    await opened.announce(announcement);
  } catch (error) {
    log.warn({ event: "not-announced", error, hint: "commands that look for this server will not find its address" });
  }
}

/** Returns the socket's path once it accepts connections. A file system without sockets does not prevent serving. */
async function listenOnSocket(local: Drainable, place: SocketPlace | null, log: Log): Promise<string | null> {
  if (place === null) return null;
  try {
    await listenLocally(local, place.path);
    await chmod(place.path, 0o600);
    return place.path;
  } catch (error) {
    if (place.chosen) throw new StartError(`cannot listen on ${place.path} (${systemCode(error)}): change --socket`);
    log.warn({
      event: "no-socket",
      error,
      hint: "the home's file system takes no Unix socket: choose another --socket",
    });
    return null;
  }
}

async function stopServing(works: readonly Promise<unknown>[], log: Log): Promise<void> {
  log.info({ event: "stopping" });
  const ends = within(stopMs, Promise.allSettled(works));
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
  const stopping = once(request.signal, "abort");
  const stopped = stopping.then(work);
  const stop = (): Promise<void> => {
    request.abort();
    return stopped;
  };
  return { isStopping: () => request.signal.aborted, stop, stopping, stopped };
}

function urlOf(address: string, port: number): string {
  if (["127.0.0.1", "0.0.0.0", "::"].includes(address)) return `https://localhost:${port}`;
  return `https://${address.includes(":") ? `[${address}]` : address}:${port}`;
}
