/** The certificate of the server's ports while it runs: read again when its files change, and renewed in time. */
import { X509Certificate } from "node:crypto";
import { stat } from "node:fs/promises";
import type { Clock } from "../clock.js";
import type { Settings } from "../config/definitions.js";
import { StartError, systemCode } from "../errors.js";
import type { Home } from "../files/home.js";
import type { Listener, TlsPair } from "../http/listener.js";
import type { Log } from "../log.js";
import { findCertificate, isToBeRenewed, pairFiles, readPair } from "./certificate.js";
import { certificateEnd, day, warnWhenLeft } from "./certificate-rules.js";

/** Milliseconds between two checks of the files. */
const checkMs = 4_000;

/** Milliseconds until a renewal that failed, on a full disk for instance, is tried again. */
const retryMs = 3_600_000;

type Ports = readonly Pick<Listener, "replacePair">[];

type Dependencies = { readonly settings: Settings; readonly home: Home; readonly clock: Clock; readonly log: Log };

export class ServedCertificate {
  readonly #ports: Ports;
  readonly #deps: Dependencies;
  /** The certificate, PEM. DANGER: without its key, of which the ports alone have a copy. */
  #cert: string;
  #endsAt: number;
  /** State of the files when they were read last; "" before the first check. */
  #read = "";
  /** State of the files in which the last check found no pair. */
  #unfit = "";
  /** Time of the last warning, by the wall clock. */
  #warned: number | null = null;
  #renewAt = 0;
  #turn: Promise<void> = Promise.resolve();
  #cancel = () => {};
  #isClosed = false;

  private constructor(cert: string, ports: Ports, deps: Dependencies) {
    this.#cert = cert;
    this.#endsAt = certificateEnd(new X509Certificate(cert));
    this.#ports = ports;
    this.#deps = deps;
  }

  /** Checks the files of what the ports serve, until it is closed. */
  static watch(cert: string, ports: Ports, deps: Dependencies): ServedCertificate {
    const served = new ServedCertificate(cert, ports, deps);
    served.#warnOfEnd();
    served.#checkLater();
    return served;
  }

  /** Milliseconds since 1970. */
  get endsAt(): number {
    return this.#endsAt;
  }

  /** Reads the files, whether or not they have changed. Never throws: a pair that cannot be used is logged. */
  reload(): Promise<void> {
    return this.#inTurn(async () => {
      const { log } = this.#deps;
      const before = this.#cert;
      this.#unfit = await this.#stateOfFiles();
      const isRead = await this.#readFiles(this.#unfit);
      if (isRead && before === this.#cert) log.info({ event: "certificate-unchanged" });
    });
  }

  /** Resolves once no check is in progress. */
  close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    return this.#turn;
  }

  #checkLater(): void {
    if (this.#isClosed) return;
    const check = () => this.#inTurn(() => this.#check()).then(() => this.#checkLater());
    this.#cancel = this.#deps.clock.after(checkMs, () => void check());
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    this.#turn = this.#turn
      .then(() => (this.#isClosed ? undefined : work()))
      .catch((error: unknown) => this.#deps.log.error({ event: "certificate-check-failed", error }));
    return this.#turn;
  }

  async #check(): Promise<void> {
    const { settings, clock } = this.#deps;
    const state = await this.#stateOfFiles();
    if (state !== this.#read) await this.#readFiles(state);
    const isDue = isToBeRenewed(new X509Certificate(this.#cert), settings, clock);
    if (isDue && clock.elapsed() >= this.#renewAt) await this.#renew();
    this.#warnOfEnd();
  }

  /**
   * Serves what the files have, and returns whether that is a pair. The two are replaced one after the other: a check
   * between them is no error, so one is logged only for files that stay as they are.
   */
  async #readFiles(state: string): Promise<boolean> {
    const { settings, home, clock, log } = this.#deps;
    try {
      this.#serve(await readPair(pairFiles(settings, home), clock));
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      if (state === this.#unfit) {
        log.error({ event: "certificate-refused", hint: `${error.message}; the server keeps the certificate it has` });
        this.#read = state;
      }
      this.#unfit = state;
      return false;
    }
    this.#read = state;
    return true;
  }

  /** @throws StartError */
  #serve(pair: TlsPair): void {
    if (pair.cert === this.#cert) return;
    for (const port of this.#ports) port.replacePair(pair);
    this.#cert = pair.cert;
    this.#endsAt = certificateEnd(new X509Certificate(pair.cert));
    this.#warned = null;
    this.#deps.log.info({ event: "certificate-replaced", hint: `new connections get it; it ends ${this.#end()}` });
  }

  async #renew(): Promise<void> {
    const { settings, home, clock, log } = this.#deps;
    try {
      const found = await findCertificate(settings, home, clock);
      this.#serve(found);
      if (found.made) log.info({ event: "certificate-made", hint: "clients must trust the new certificate file" });
    } catch (error) {
      this.#renewAt = clock.elapsed() + retryMs;
      log.error({ event: "certificate-not-renewed", error, hint: "it is tried again in an hour" });
    }
  }

  #warnOfEnd(): void {
    const { settings, home, clock, log } = this.#deps;
    const left = this.#endsAt - clock.now();
    const isRecent = this.#warned !== null && Math.abs(clock.now() - this.#warned) < day;
    if (left > warnWhenLeft || isRecent) return;
    this.#warned = clock.now();
    const { certificate } = pairFiles(settings, home);
    const ends = left > 0 ? `ends ${this.#end()}` : `ended ${this.#end()}, clients refuse it`;
    const hint = `the certificate ${certificate} ${ends}: replace it and its key, which needs no restart`;
    log.warn({ event: "certificate-ends", hint });
  }

  #end(): string {
    return new Date(this.#endsAt).toISOString();
  }

  /** Returns what changes with the files; a file that cannot be found has a state also. */
  async #stateOfFiles(): Promise<string> {
    const { settings, home } = this.#deps;
    const { certificate, privateKey } = pairFiles(settings, home);
    const states = [certificate, privateKey].map(async (file) => {
      try {
        const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
        return [dev, ino, size, mtimeNs, ctimeNs].join(":");
      } catch (error) {
        return systemCode(error) ?? "unknown";
      }
    });
    return (await Promise.all(states)).join(" ");
  }
}
