/** Mapping of a request without a response to an error: its code, and what the caller can do. */
import type { ClientRequest } from "node:http";
import type { TLSSocket } from "node:tls";
import { StrongroomError, systemCode } from "./client-error.js";
import { nameOf, type Place, type TlsPlace } from "./discovery.js";
import { type ApiRequest, isRead } from "./request.js";

const notListening = [
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EADDRNOTAVAIL",
  "ETIMEDOUT",
];

export function failureOf(error: Error, sent: ClientRequest, request: ApiRequest, place: Place): StrongroomError {
  if (error instanceof StrongroomError) return error;
  const code = systemCode(error);
  const at = nameOf(place);
  const socket = sent.socket as TLSSocket | null;
  if (place.socket === null && socket?.authorizationError) {
    return new StrongroomError("UNTRUSTED_CERTIFICATE", untrusted(code, place), { cause: error });
  }
  if (notListening.includes(code)) {
    const message = `no server responds at ${at} (${code}): start it with  strongroom serve  or set its address with STRONGROOM_ADDRESS`;
    return new StrongroomError("UNREACHABLE", message, { cause: error });
  }
  if (/^(?:EPROTO|ERR_SSL|HPE_)/.test(code)) {
    const message = `what listens at ${at} does not speak ${place.socket === null ? "HTTPS" : "HTTP"} correctly (${code}): check the address`;
    return new StrongroomError("PROTOCOL", message); // the cause would quote what was received
  }
  const message = `the connection to ${at} closed before the response (${code}): check that the server is running`;
  return new StrongroomError("UNREACHABLE", `${message}${afterwards(request)}`, { cause: error });
}

/** Returns a warning, for a write, that it may have been done without a response. */
export function afterwards(request: ApiRequest): string {
  return isRead(request) ? "" : "; it may have been done all the same: look before you repeat it";
}

function untrusted(code: string, { address, certificateSource }: TlsPlace): string {
  if (code === "CERT_HAS_EXPIRED") {
    return `the certificate of ${address.origin} has expired: restart the server to renew it`;
  }
  if (code === "CERT_NOT_YET_VALID") {
    return `the certificate of ${address.origin} is not valid yet: correct this machine's clock, or restart the server, which replaces one that it made while its clock was ahead`;
  }
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return `the certificate of ${address.origin} is not for that name: use one of its names, or set STRONGROOM_SERVER_NAMES for the server`;
  }
  return (
    `the certificate of ${address.origin} is not the one in ${certificateSource} (${code}): ` +
    "name the server's own certificate, or find out who listens there; nothing was sent to it"
  );
}
