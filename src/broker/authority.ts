/**
 * Certificate authority of one session: its key exists only in memory, and it can name only the session's hosts
 * (RFC 5280, section 4.2.1.10), so that a stolen one is of no use for any other host.
 */
import { webcrypto } from "node:crypto";
import { isIP } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const hour = 3600 * 1000;

/** How long the authority and its certificates are valid, in milliseconds: up to the session's end, within these bounds. */
const [shortestLife, longestLife] = [24 * hour, 30 * 24 * hour];

/** A client's clock may be a little behind. */
const before = hour;

/** Signs for hosts of which none is a subdomain of another. */
type Signer = { readonly keys: webcrypto.CryptoKeyPair; readonly certificate: X509Certificate };

export class SessionAuthority {
  /** Keys of all hosts' certificates: made with the authority, and as short-lived. */
  readonly #hostKeys: webcrypto.CryptoKeyPair;
  readonly #hostKeyPem: string;
  readonly #signers: readonly [Signer, ...Signer[]];
  readonly #hostSigner: (host: string) => Signer;
  readonly #contexts = new Map<string, Promise<SecureContext>>();

  private constructor(
    hostKeys: webcrypto.CryptoKeyPair,
    hostKeyPem: string,
    signers: readonly [Signer, ...Signer[]],
    hostSigner: (host: string) => Signer,
  ) {
    this.#hostKeys = hostKeys;
    this.#hostKeyPem = hostKeyPem;
    this.#signers = signers;
    this.#hostSigner = hostSigner;
  }

  /**
   * Makes an authority for these hosts, DNS names or IP addresses.
   * @param now milliseconds since 1970
   * @param until when the session ends, in milliseconds since 1970
   */
  static async make(hosts: readonly string[], now: number, until = 0): Promise<SessionAuthority> {
    const life = { now, end: now + Math.min(Math.max(until - now, shortestLife), longestLife) };
    const [atTop, ...below] = subdomainLevels(hosts);
    const first = await makeSigner(atTop, name, life);
    const others = await Promise.all(below.map((level, i) => makeSigner(level, `${name} ${i + 2}`, life)));
    const byHost = new Map(below.flatMap((level, i) => level.map((host) => [host, others[i]] as const)));
    const hostKeys = await makeKeys();
    const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", hostKeys.privateKey)).toString("base64");
    const pem = `-----BEGIN PRIVATE KEY-----\n${pkcs8}\n-----END PRIVATE KEY-----\n`;
    return new SessionAuthority(hostKeys, pem, [first, ...others], (host) => byHost.get(host) ?? first);
  }

  /** Certificates that a session's programs must trust, PEM: one, and one more where a host is another's subdomain. */
  get certificate(): string {
    return this.#signers.map(({ certificate }) => `${certificate.toString("pem")}\n`).join("");
  }

  /** Whether certificates that it signs are still accepted at `now`, milliseconds since 1970. */
  isValid(now: number): boolean {
    return now < this.#signers[0].certificate.notAfter.getTime();
  }

  /** Returns TLS credentials for one of the session's hosts, made at the first call. */
  secureContext(host: string): Promise<SecureContext> {
    const known = this.#contexts.get(host);
    if (known !== undefined) return known;
    const made = this.#makeContext(host);
    this.#contexts.set(host, made);
    return made;
  }

  async #makeContext(host: string): Promise<SecureContext> {
    const signer = this.#hostSigner(host);
    const { subject: issuer, notBefore, notAfter } = signer.certificate;
    const certificate = await X509CertificateGenerator.create({
      issuer,
      notBefore,
      notAfter,
      publicKey: this.#hostKeys.publicKey,
      signingKey: signer.keys.privateKey,
      signingAlgorithm: algorithm,
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
        // The only name: a certificate without a subject needs it critical (RFC 5280, section 4.2.1.6).
        new SubjectAlternativeNameExtension([{ type: isIP(host) === 0 ? "dns" : "ip", value: host }], true),
        await SubjectKeyIdentifierExtension.create(this.#hostKeys.publicKey),
        await AuthorityKeyIdentifierExtension.create(signer.keys.publicKey),
      ],
    });
    // Without the authority's, which clients have: OpenSSL takes at most 100 KiB, and it may name a thousand hosts.
    return createSecureContext({ cert: certificate.toString("pem"), key: this.#hostKeyPem, minVersion: "TLSv1.2" });
  }
}

/**
 * Returns the hosts in levels, by how many of the others they are subdomains of: within a level, no host is a subdomain of
 * another. Name constraints that permit `example.com` and nothing below it also exclude `api.example.com`, whatever else they
 * permit.
 */
function subdomainLevels(hosts: readonly string[]): [string[], ...string[][]] {
  const all = new Set(hosts);
  const levels: [string[], ...string[][]] = [[]];
  for (const host of hosts) {
    const labels = host.split(".");
    const above = labels.filter((_, i) => i > 0 && all.has(labels.slice(i).join("."))).length;
    const level = levels[above] ?? [];
    levels[above] = level;
    level.push(host);
  }
  return levels;
}

/** Milliseconds since 1970. */
type Life = { readonly now: number; readonly end: number };

async function makeSigner(hosts: readonly string[], subject: string, { now, end }: Life): Promise<Signer> {
  const keys = await makeKeys();
  const certificate = await X509CertificateGenerator.create({
    subject,
    issuer: subject,
    notBefore: new Date(now - before),
    notAfter: new Date(end),
    publicKey: keys.publicKey,
    signingKey: keys.privateKey,
    signingAlgorithm: algorithm,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
      new Extension(nameConstraints, true, onlyHosts(hosts)),
    ],
  });
  return { keys, certificate };
}

function makeKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
}

/** Name of the authority's first certificate; others add a number. A comma would begin another part of the name. */
const name = "CN=Strongroom broker session";

const nameConstraints = "2.5.29.30";

/** Tags of the DER that name constraints need (X.690): SEQUENCE, and the context's own. */
const [sequence, permitted, excluded, dnsName, ipAddress] = [0x30, 0xa0, 0xa1, 0x82, 0x87];

/**
 * Permits exactly these hosts. A permitted DNS name permits its subdomains too, so they are excluded; and a kind of name
 * without a permitted name would be permitted altogether, so each kind has a name that no certificate can match.
 */
function onlyHosts(hosts: readonly string[]): Buffer {
  const names = hosts.filter((host) => isIP(host) === 0);
  const addresses = hosts.filter((host) => isIP(host) !== 0).map(addressBytes);
  const unreachable = [4, 16].map((length) => Buffer.alloc(length));
  const base = (tag: number, value: Buffer) => tlv(sequence, tlv(tag, value));
  const host = (name: string) => base(dnsName, Buffer.from(name, "ascii"));
  return tlv(
    sequence,
    tlv(
      permitted,
      ...["invalid", ...names].map(host),
      ...[...unreachable, ...addresses].map((bytes) =>
        base(ipAddress, Buffer.concat([bytes, Buffer.alloc(bytes.length, 0xff)])),
      ),
    ),
    tlv(excluded, ...["invalid", ...names].map((name) => host(`.${name}`))),
  );
}

/** Tag, length and value (X.690, section 8.1). */
function tlv(tag: number, ...values: readonly Buffer[]): Buffer {
  const value = Buffer.concat(values);
  return Buffer.concat([Buffer.from([tag, ...lengthBytes(value.length)]), value]);
}

/** DANGER: Go and Rust refuse a certificate with a length that is not in its shortest form (X.690, section 10.1). */
function lengthBytes(length: number): number[] {
  if (length < 0x80) return [length];
  const bytes: number[] = [];
  for (let left = length; left > 0; left >>>= 8) bytes.unshift(left & 0xff);
  return [0x80 | bytes.length, ...bytes];
}

function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split(".").map(Number));
  const [left, right = []] = new URL(`http://[${address}]/`).hostname.slice(1, -1).split("::").map(addressGroups);
  const zeros = new Array<number>(8 - (left?.length ?? 0) - right.length).fill(0);
  return Buffer.from([...(left ?? []), ...zeros, ...right].flatMap((group) => [group >> 8, group & 0xff]));
}

function addressGroups(text: string): number[] {
  return text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16));
}
