/** Rules for certificates: the names that they must have, how long they must last, and whether one is self-made. */
import { type KeyObject, sign, verify, type X509Certificate } from "node:crypto";
import { isIP } from "node:net";

export const day = 24 * 3600 * 1000;

/** Milliseconds of validity; our certificate is renewed when it has less left. */
export const renewWhenLeft = 30 * day;

/** Milliseconds of validity; when a certificate has less left, the log, `status` and `doctor` say when it ends. */
export const warnWhenLeft = 14 * day;

/** The names in every certificate of the server. */
export const ownNames: readonly string[] = ["localhost", "127.0.0.1", "::1"];

const commonName = "CN=strongroom";

/** Whether the server made it: a certificate that the user put there is never overwritten. */
export function isSelfMade({ subject, issuer }: X509Certificate): boolean {
  return subject === commonName && issuer === commonName;
}

export function covers(certificate: X509Certificate, name: string): boolean {
  return (isIP(name) ? certificate.checkIP(name) : certificate.checkHost(name)) !== undefined;
}

const sample = Buffer.from("strongroom");

/**
 * Whether the private key is the certificate's: signs a few bytes and verifies them. The public key beside a damaged private
 * one may still be the certificate's. A certificate that signs itself must also have its own signature.
 */
export function isPair(certificate: X509Certificate, privateKey: KeyObject): boolean {
  const digest = ["ed25519", "ed448"].includes(privateKey.asymmetricKeyType ?? "") ? null : "sha256";
  try {
    if (!certificate.checkPrivateKey(privateKey)) return false;
    return verify(digest, sample, certificate.publicKey, sign(digest, sample, privateKey)) && isIntact(certificate);
  } catch {
    return false; // OpenSSL refuses a damaged key
  }
}

/**
 * A certificate that another authority has signed cannot be checked here. With our name once, it was made here, and the
 * other name is damaged.
 */
function isIntact(certificate: X509Certificate): boolean {
  const { subject, issuer, publicKey } = certificate;
  const signsItself = subject === issuer || subject === commonName || issuer === commonName;
  return !signsItself || certificate.verify(publicKey);
}

/** Milliseconds since 1970. */
export function certificateEnd(certificate: X509Certificate): number {
  return Date.parse(certificate.validTo);
}

/** Milliseconds since 1970. */
export function certificateStart(certificate: X509Certificate): number {
  return Date.parse(certificate.validFrom);
}
