/** The server's certificate: the user's own by setting, or a self-signed one, made at first start and renewed in time. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import type { Clock } from "../clock.js";
import type { Settings } from "../config/definitions.js";
import { StartError, systemCode } from "../errors.js";
import { replaceFile, systemFiles } from "../files/durable.js";
import type { Home } from "../files/home.js";
import type { TlsPair } from "../http/listener.js";
import {
  certificateEnd,
  certificateStart,
  covers,
  day,
  isPair,
  isSelfMade,
  ownNames,
  renewWhenLeft,
} from "./certificate-rules.js";

/** From a day before it is made: 366 days in all. */
const lifetime = 365 * day;

export type Certificate = TlsPair & {
  readonly file: string;
  /** Made at this start: clients that kept the old one must fetch the new one. */
  readonly made: boolean;
};

type PairFiles = { readonly certificate: string; readonly privateKey: string };

/** Files of the server's pair: the user's by setting, else in the home. */
export function pairFiles({ tlsCert, tlsKey }: Settings, home: Home): PairFiles {
  return tlsCert !== null && tlsKey !== null ? { certificate: tlsCert, privateKey: tlsKey } : home;
}

/** @throws StartError when a certificate or key exists and cannot be used. */
export async function findCertificate(settings: Settings, home: Home, clock: Clock): Promise<Certificate> {
  const { tlsCert, tlsKey } = settings;
  if (tlsCert !== null && tlsKey !== null)
    return describe(await readPair(pairFiles(settings, home), clock), tlsCert, false);
  const names = namesFor(settings);
  const cert = await readIfThere(home.certificate);
  const key = await readIfThere(home.privateKey);
  const kept = cert !== null && key !== null && fits({ cert, key }, home.certificate, home.privateKey);
  if (kept && isGood(new X509Certificate(cert), names, clock)) return describe({ cert, key }, home.certificate, false);
  refuseForeign(home, cert, key, kept);
  // a client's clock may be a day behind
  const made = await makeCertificate(names, new Date(clock.now() - day), new Date(clock.now() + lifetime));
  // In this order: after a crash between the two, a self-made certificate without its key is replaced.
  await replaceFile(systemFiles, home.certificate, Buffer.from(made.cert), 0o644);
  await replaceFile(systemFiles, home.privateKey, Buffer.from(made.key));
  return describe(made, home.certificate, true);
}

function describe(pair: TlsPair, file: string, made: boolean): Certificate {
  return { ...pair, file, made };
}

/** Never overwrites what the user put there. @throws StartError */
function refuseForeign(home: Home, cert: string | null, key: string | null, fit: boolean): void {
  const { certificate, privateKey } = home;
  if (cert === null && key === null) return;
  if (cert === null) {
    throw new StartError(
      `${privateKey} has no certificate beside it: add it as cert.pem, or move the key away to have a pair made`,
    );
  }
  if (isSelfMade(parseCertificate(cert, certificate))) return;
  const why = fit
    ? "expires within 30 days or lacks a name of this server"
    : "its key is missing, damaged, or belongs to another certificate";
  throw new StartError(
    `${certificate} was not made by strongroom, and ${why}: replace it, set STRONGROOM_TLS_CERT and ` +
      "STRONGROOM_TLS_KEY to use another pair, or move it and key.pem away to have a pair made",
  );
}

/** Every name by which a client may reach the server; an address that means "all" is not a name. */
function namesFor({ host, serverNames }: Settings): string[] {
  const listening = host === "0.0.0.0" || host === "::" ? [] : [host];
  return [...new Set([...ownNames, ...listening, ...serverNames])];
}

/** @throws StartError for a pair that cannot be served */
export async function readPair({ certificate, privateKey }: PairFiles, clock: Clock): Promise<TlsPair> {
  const pair = { cert: await mustRead(certificate), key: await mustRead(privateKey) };
  if (!fits(pair, certificate, privateKey)) {
    throw new StartError(
      `${privateKey} is not the private key of ${certificate}, or one of them is damaged: name a matching pair`,
    );
  }
  if (clock.now() >= certificateEnd(new X509Certificate(pair.cert))) {
    throw new StartError(`the certificate ${certificate} has expired: renew it, or unset it to have one made`);
  }
  return pair;
}

async function mustRead(file: string): Promise<string> {
  const text = await readIfThere(file);
  if (text === null) throw new StartError(`${file} is missing: correct the setting, or put the file there`);
  return text;
}

async function readIfThere(file: string): Promise<string | null> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (systemCode(error) === "ENOENT") return null;
    throw new StartError(`${file} cannot be read (${systemCode(error)}): check its path, owner and mode`);
  }
}

function fits({ cert, key }: TlsPair, certFile: string, keyFile: string): boolean {
  return isPair(
    parseCertificate(cert, certFile),
    parse(keyFile, () => createPrivateKey(key)),
  );
}

function parseCertificate(cert: string, file: string): X509Certificate {
  return parse(file, () => new X509Certificate(cert));
}

function parse<T>(file: string, make: () => T): T {
  try {
    return make();
  } catch {
    throw new StartError(`${file} is not PEM that can be read without a password: correct it, or choose another file`);
  }
}

/** Whether the server makes another one in its place. */
export function isToBeRenewed(certificate: X509Certificate, settings: Settings, clock: Clock): boolean {
  return settings.tlsCert === null && isSelfMade(certificate) && !isGood(certificate, namesFor(settings), clock);
}

function isGood(certificate: X509Certificate, names: readonly string[], clock: Clock): boolean {
  // Made while the clock was ahead: no client accepts it. Someone else's becomes valid when its owner meant it to.
  if (isSelfMade(certificate) && certificateStart(certificate) > clock.now()) return false;
  return certificateEnd(certificate) - clock.now() >= renewWhenLeft && names.every((name) => covers(certificate, name));
}

/** Makes a certificate that signs itself, valid from `from` to `until` for these host names and IP addresses, and its key. */
export async function makeCertificate(names: readonly string[], from: Date, until: Date): Promise<TlsPair> {
  const { generate } = await import("selfsigned"); // half of a start's time to load, and rarely needed
  const altNames = names.map((name) =>
    isIP(name) ? { type: 7 as const, ip: name } : { type: 2 as const, value: name },
  );
  const { cert, private: key } = await generate([{ name: "commonName", value: "strongroom" }], {
    keyType: "ec",
    curve: "P-256",
    algorithm: "sha256",
    notBeforeDate: from,
    notAfterDate: until,
    extensions: [
      { name: "basicConstraints", cA: false, critical: true },
      { name: "keyUsage", digitalSignature: true, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      { name: "subjectAltName", altNames },
    ],
  });
  return { cert, key };
}
