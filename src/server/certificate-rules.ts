/** Rules for certificates: the names that they must have, how long they must last, and whether one is self-made. */
import type { X509Certificate } from "node:crypto";
import { isIP } from "node:net";

export const day = 24 * 3600 * 1000;

/** Milliseconds of validity; one of ours that has less left is renewed at the next start. */
export const renewWhenLeft = 30 * day;

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

/** Milliseconds since 1970. */
export function endOf(certificate: X509Certificate): number {
  return Date.parse(certificate.validTo);
}

/** Milliseconds since 1970. */
export function startOf(certificate: X509Certificate): number {
  return Date.parse(certificate.validFrom);
}
