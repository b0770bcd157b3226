/** Owns what is asked of a certificate: whom it must name, how long it must last, whether it was made here. */
import type { X509Certificate } from "node:crypto";
import { isIP } from "node:net";

export const day = 24 * 3600 * 1000;

/** In milliseconds; one of ours that has less left is made anew at the next start. */
export const renewWhenLeft = 30 * day;

/** What every certificate of the server names. */
export const ownNames: readonly string[] = ["localhost", "127.0.0.1", "::1"];

const commonName = "CN=strongroom";

/** Whether it was made here: what somebody has put there is never written over. */
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
