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

/** How long the authority and its certificates are valid, in milliseconds. */
const lifetime = 24 * hour;

/** A client's clock may be a little behind. */
const before = hour;

export class SessionAuthority {
  readonly #keys: webcrypto.CryptoKeyPair;
  readonly #certificate: X509Certificate;
  /** Of all hosts: made with the authority, and as short-lived. */
  readonly #hostKeys: webcrypto.CryptoKeyPair;
  readonly #hostKeyPem: string;
  readonly #contexts = new Map<string, Promise<SecureContext>>();

  private constructor(
    keys: webcrypto.CryptoKeyPair,
    certificate: X509Certificate,
    hostKeys: webcrypto.CryptoKeyPair,
    hostKeyPem: string,
  ) {
    this.#keys = keys;
    this.#certificate = certificate;
    this.#hostKeys = hostKeys;
    this.#hostKeyPem = hostKeyPem;
  }

  /**
   * Makes an authority for these hosts, DNS names or IP addresses.
   * @param now milliseconds since 1970
   */
  static async make(hosts: readonly string[], now: number): Promise<SessionAuthority> {
    const [keys, hostKeys] = [await makeKeys(), await makeKeys()];
    const certificate = await X509CertificateGenerator.create({
      subject: name,
      issuer: name,
      notBefore: new Date(now - before),
      notAfter: new Date(now + lifetime),
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
    const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", hostKeys.privateKey)).toString("base64");
    return new SessionAuthority(
      keys,
      certificate,
      hostKeys,
      `-----BEGIN PRIVATE KEY-----\n${pkcs8}\n-----END PRIVATE KEY-----\n`,
    );
  }

  /** The authority's certificate, PEM: what the session's programs must trust. */
  get certificate(): string {
    return `${this.#certificate.toString("pem")}\n`;
  }

  /** Whether certificates that it signs are still accepted at `now`, milliseconds since 1970. */
  isValid(now: number): boolean {
    return now < this.#certificate.notAfter.getTime();
  }

  /** Returns TLS credentials for one of the session's hosts, made at the first call. */
  contextOf(host: string): Promise<SecureContext> {
    const known = this.#contexts.get(host);
    if (known !== undefined) return known;
    const made = this.#makeContext(host);
    this.#contexts.set(host, made);
    return made;
  }

  async #makeContext(host: string): Promise<SecureContext> {
    const { notBefore, notAfter } = this.#certificate;
    const certificate = await X509CertificateGenerator.create({
      issuer: name,
      notBefore,
      notAfter,
      publicKey: this.#hostKeys.publicKey,
      signingKey: this.#keys.privateKey,
      signingAlgorithm: algorithm,
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
        // The only name: a certificate without a subject needs it critical (RFC 5280, section 4.2.1.6).
        new SubjectAlternativeNameExtension([{ type: isIP(host) === 0 ? "dns" : "ip", value: host }], true),
        await SubjectKeyIdentifierExtension.create(this.#hostKeys.publicKey),
        await AuthorityKeyIdentifierExtension.create(this.#keys.publicKey),
      ],
    });
    // Without the authority's, which clients have: OpenSSL takes at most 100 KiB, and it may name a thousand hosts.
    return createSecureContext({ cert: certificate.toString("pem"), key: this.#hostKeyPem, minVersion: "TLSv1.2" });
  }
}

function makeKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
}

/** Of the authority, and of its certificates' issuer. A comma would begin another part of the name. */
const name = "CN=Strongroom broker session";

const nameConstraints = "2.5.29.30";

/** Tags of the DER that name constraints need (X.690): SEQUENCE, and the context's own. */
const [sequence, permitted, excluded, dnsName, ipAddress] = [0x30, 0xa0, 0xa1, 0x82, 0x87];

/**
 * Permits exactly these hosts. A permitted DNS name permits its subdomains too, so they are excluded; and a kind of name
 * without any permitted one would be permitted altogether, so each kind has one that no certificate can match.
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
  const [left, right = []] = new URL(`http://[${address}]/`).hostname.slice(1, -1).split("::").map(groupsOf);
  const zeros = new Array<number>(8 - (left?.length ?? 0) - right.length).fill(0);
  return Buffer.from([...(left ?? []), ...zeros, ...right].flatMap((group) => [group >> 8, group & 0xff]));
}

function groupsOf(text: string): number[] {
  return text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16));
}
