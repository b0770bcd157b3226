/** Service on a claimed vault: connects vault, application and listeners, and stops them in order. */
import type { Server } from "node:net";
import { Credentials } from "../access/credentials.js";
import { ReviewAccess } from "../access/review.js";
import { findToken, RootRotation, type Token } from "../access/root-token.js";
import { ClientTokens } from "../access/tokens.js";
import { auditCheck } from "../audit/check.js";
import { auditDirectory, signedCheckpoint } from "../audit/format.js";
import type { CheckpointJudge } from "../audit/verify.js";
import type { Broker } from "../broker/broker.js";
import type { Clock } from "../clock.js";
import type { Settings } from "../config/definitions.js";
import { openApiDocument } from "../contract/document.js";
import type { ClaimedStore } from "../engines/engine.js";
import { removeTemps, systemFiles } from "../files/durable.js";
import { type Home, hintsOnNamedFiles } from "../files/home.js";
import type { Api } from "../http/adapter.js";
import { createApp, createLockouts, type Handle, type MessageClasses, nativeApi } from "../http/app.js";
import type { Service } from "../http/endpoint.js";
import { type Drainable, drain } from "../http/listener.js";
import { readLastProve } from "../last-prove.js";
import { readManifest } from "../manifest.js";
import { measuredStore } from "../metrics/measured-store.js";
import type { Observer } from "../observer.js";
import { refuseUnfinished } from "../storage/unfinished-vault.js";
import { Vault } from "../vault/vault.js";
import type { VitalSources } from "../vitals.js";
import { type Certificate, findCertificate } from "./certificate.js";
import { currentGauges } from "./gauges.js";
import {
  announce,
  connectionPlaces,
  createListeners,
  findSocketPlace,
  type Listeners,
  listenOnPorts,
  listenOnSocket,
  prepareSocket,
  serverUrl,
} from "./listening.js";
import { ServedCertificate } from "./served-certificate.js";
import { type AllDependencies, type Strongroom, stopMs } from "./server-handle.js";
import { awaitEnds, createStopper, openOrRelease, within } from "./stopping.js";
import { startTelemetry, type Telemetry } from "./telemetry.js";

/** How long a stop waits for running requests, so that the audit log has them, in milliseconds. */
const lastRecordsMs = 1_000;

/** Requires the claim on the vault: nothing else in the home is written before it. */
export async function serveStore(
  opened: ClaimedStore,
  home: Home,
  settings: Settings,
  around: AllDependencies,
): Promise<Strongroom> {
  const { clock, log } = around;
  const { token, certificate } = await prepareHome(home, settings, around);
  await refuseUnfinished(opened.store);
  const place = await findSocketPlace(settings, home, log);
  const listeners = await createListeners(certificate, settings, around);
  const observed = await startTelemetry(home, settings, around, listeners.forVault?.routes ?? []);
  const guarded = await openVault(opened, token, settings, observed, around);
  const { vault, credentials } = guarded;
  observed.vitals.setSources(vitalSources(vault, listeners, clock));
  const unserved = { close: () => closeUnserved(vault, listeners) };
  const parts = await openOrRelease(unserved, async () =>
    serviceDependencies(home, settings, guarded, observed, clock),
  );
  const { address, broker, lockouts, ...ports } = await openOrRelease(unserved, () =>
    openPorts(listeners, settings, guarded, observed, around),
  );
  const served = watchCertificate(certificate, listeners, { settings, home, clock, log });
  const stopper = createStopper(() => stopServing(guarded, listeners, [broker, served], observed, opened, around));
  const service = {
    ...parts,
    ...{ ...lockouts, broker, log, ...ports, socket: place?.path ?? null },
    review: settings.reviewPage === false ? null : createReview(guarded, observed, settings, clock),
    rootRotation: new RootRotation(token, credentials, clock, around.files),
    certificate: served,
    stopSignal: stopper.signal,
    shutDown: () => void stopper.stop(),
  };
  reportStart(observed, clock);
  const appFor = (api: Api, classes: MessageClasses) =>
    createApp(api, service, { ...settings, address }, clock, classes, observed.observers);
  serveRequests(listeners, appFor);
  const socket = await openOrRelease({ close: stopper.stop }, () => listenOnSocket(listeners, place, log));
  const url = serverUrl(address, ports.port);
  await announce(opened, { url, socket: place?.chosen ? socket : null, ...announcedFacts(settings, around) }, log);
  return {
    ...{ url, ...ports, brokerPort: broker?.port ?? null, socket },
    ...{ tokenSource: token.source, certificateFile: certificate.file, vaultPath: opened.store.vaultPath },
    reloadCertificate: () => served.reload(),
    lock: () => vault.lock(),
    ...stopper,
  };
}

function watchCertificate(
  { cert }: Certificate,
  { secure, forVault }: Listeners,
  around: Parameters<typeof ServedCertificate.watch>[2],
): ServedCertificate {
  return ServedCertificate.watch(cert, [secure, ...(forVault ? [forVault.listener] : [])], around);
}

/** Returns the observer that voids the tickets of TLS sessions with each lock. */
function ticketEnds({ secure, forVault }: Listeners): Observer {
  return {
    vaultEvent({ event }) {
      if (event !== "lock") return;
      secure.replaceTicketKeys();
      forVault?.listener.replaceTicketKeys();
    },
  };
}

/** The broker first: its thread takes a while, for which requests at the other ports would have to wait. */
async function openPorts(
  listeners: Listeners,
  settings: Settings,
  guarded: GuardedVault,
  observed: Telemetry,
  around: AllDependencies,
) {
  const lockouts = createLockouts(around.clock, around.log, observed.audit, observed.observers);
  const broker = await startBroker(settings, guarded, observed, lockouts, around);
  const unopened = { close: async () => broker?.stop() };
  const found = await openOrRelease(unopened, () => listenOnPorts(listeners, settings, around.log));
  observed.observers.add(ticketEnds(listeners));
  return { ...found, broker, lockouts };
}

/** `files`: those that no sandboxed program may open, besides the home. */
function announcedFacts(settings: Settings, { start }: AllDependencies) {
  const { tokenFile, tlsKey, storePasswordFile, brokerSocket } = settings;
  return { files: [tokenFile, tlsKey, storePasswordFile, brokerSocket].filter((file) => file !== null), start };
}

type AppMaker = (api: Api, classes: MessageClasses) => Handle;

function serveRequests({ messages, secure, local, forVault }: Listeners, appFor: AppMaker): void {
  const app = appFor(nativeApi, messages);
  for (const each of [secure, local]) each.serve(app);
  forVault?.listener.serve(appFor(forVault.api, forVault.messages));
}

function reportStart({ audit, observers }: Telemetry, clock: Clock): void {
  audit?.record({ event: "start" });
  observers.vaultEvent({ event: "start", at: clock.now() });
}

/** Loaded only where it is wanted: it costs the others neither time nor memory. @throws StartError */
async function startBroker(
  settings: Settings,
  guarded: GuardedVault,
  { audit }: Telemetry,
  { tokenLockout }: Pick<Service, "tokenLockout">,
  { clock, log, brokerLimits }: AllDependencies,
): Promise<Broker | null> {
  const { brokerPort, brokerSocket: socket, upstreamCa } = settings;
  if (brokerPort === null) return null;
  if (socket !== null) await prepareSocket(socket, "--broker-socket");
  const { Broker, defaultBrokerLimits } = await import("../broker/broker.js");
  const limits = { ...defaultBrokerLimits, connections: connectionPlaces(settings).secure, ...brokerLimits };
  return Broker.start({ port: brokerPort, socket }, upstreamCa, {
    ...guarded,
    audit,
    tokenLockout,
    clock,
    log,
    limits,
  });
}

/** Finds or makes what the home has for access: the root token and the certificate. */
async function prepareHome(home: Home, settings: Settings, { clock, log }: AllDependencies) {
  for (const directory of [home.path, home.tls]) await removeTemps(systemFiles, directory);
  const token = await findToken(settings, home);
  const certificate = await findCertificate(settings, home, clock);
  if (certificate.made) log.info({ event: "certificate-made", hint: "clients must trust the new certificate file" });
  for (const hint of await hintsOnNamedFiles(settings)) log.warn({ event: "not-hardened", hint });
  return { token, certificate };
}

type GuardedVault = { readonly vault: Vault; readonly credentials: Credentials; readonly tokens: ClientTokens };

/** Opens the vault with the tokens that give access to it, which are in one of its documents. */
async function openVault(
  { store }: ClaimedStore,
  token: Token,
  settings: Settings,
  { observers, audit }: Telemetry,
  { clock, log, minScryptLogN }: AllDependencies,
): Promise<GuardedVault> {
  const vaultSettings = { ...settings, ...(minScryptLogN && { minScryptLogN }) };
  const measured = measuredStore(store, observers);
  const vault = await Vault.open({ store: measured, settings: vaultSettings, clock, log, observers, audit });
  const credentials = new Credentials(token.text, clock);
  const tokens = await openOrRelease(vault, () => ClientTokens.open({ vault: vault.records, credentials, clock, log }));
  vault.setRecordStore(tokens);
  audit?.setKey(vault.records);
  return { vault, credentials, tokens };
}

/** A lock or a stop ends the page's token. */
function createReview(
  { credentials }: GuardedVault,
  { observers }: Telemetry,
  { reviewPage }: Settings,
  clock: Clock,
): ReviewAccess {
  const review = new ReviewAccess(credentials, clock, reviewPage === true);
  observers.add(review);
  return review;
}

function vitalSources(vault: Vault, listeners: Listeners, clock: Clock): VitalSources {
  return {
    derivations: () => vault.report.derivations(),
    connections: () => countConnections(allListeners(listeners)),
    now: () => clock.now(),
  };
}

function allListeners({ secure, local, forVault }: Listeners): readonly Drainable[] {
  return [secure, local, ...(forVault ? [forVault.listener] : [])];
}

async function countConnections(listeners: readonly { readonly server: Server }[]): Promise<number> {
  const counts = await Promise.all(
    listeners.map(
      ({ server }) => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count ?? 0))),
    ),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

function createAuditCheck(
  home: Home,
  { vault }: GuardedVault,
  audit: Telemetry["audit"],
  clock: Clock,
): Service["checkAuditLog"] {
  if (audit === null) return async () => null;
  const judge: CheckpointJudge = (checkpoints) => vault.records.verifyCheckpoints(checkpoints.map(signedCheckpoint));
  const check = auditCheck(auditDirectory(home.path), judge, () => clock.now());
  return async () => {
    await audit.flush();
    return check().catch(() => null); // `audit verify`, which the page then names, says why
  };
}

/** Returns the endpoints' dependencies that are known before the server listens. */
function serviceDependencies(
  home: Home,
  settings: Settings,
  guarded: GuardedVault,
  { audit, metrics, vitals }: Telemetry,
  clock: Clock,
) {
  const manifest = readManifest();
  return {
    ...guarded,
    audit,
    approveWith: settings.approveWith,
    vitals,
    lastProve: () => readLastProve(home.path),
    checkAuditLog: createAuditCheck(home, guarded, audit, clock),
    maxBodyBytes: 6 * settings.maxValueBytes + 64 * 1024,
    maxBatchBytes: settings.maxBatchBytes,
    contract: openApiDocument(settings),
    scrape: async () => {
      const figures = await guarded.vault.report.figures();
      return metrics.scrape(
        currentGauges({ figures, settings, tokens: guarded.tokens, audit, version: manifest.version }),
      );
    },
    version: manifest.version,
  };
}

/** After a start that failed: a listener that stays open would keep the process. */
async function closeUnserved(vault: Vault, listeners: Listeners): Promise<void> {
  await Promise.all([vault.close(), ...allListeners(listeners).map((each) => drain(each, 0))]);
}

/** Locks first, and closes the audit log only after the running requests, so that it has them. */
function stopServing(
  { vault }: GuardedVault,
  listeners: Listeners,
  [broker, served]: readonly [Broker | null, ServedCertificate],
  { observers, audit }: Telemetry,
  { release }: ClaimedStore,
  { clock, log }: AllDependencies,
): Promise<void> {
  audit?.record({ event: "stop" });
  observers.vaultEvent({ event: "stop", at: clock.now() });
  const drained = Promise.all(allListeners(listeners).map((each) => drain(each, stopMs)));
  const lastRecords = () => within(lastRecordsMs, drained).then(() => audit?.close());
  const others = [drained, served.close(), broker?.stop() ?? Promise.resolve()];
  return awaitEnds([vault.close(lastRecords).finally(release), ...others], log);
}
