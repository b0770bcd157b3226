/** TLS connections to the hosts of bindings: verified certificates, checked addresses, no second look-up. */
import { connect as connectTcp, isIP, type Socket } from "node:net";
import {
  connect as connectTls,
  createSecureContext,
  rootCertificates,
  type SecureContext,
  type TLSSocket,
} from "node:tls";
import { ByteStream } from "./byte-stream.js";
import { type Resolve, resolveAddresses } from "./egress.js";

/** How long a connection to one address may take, and then its handshake, in milliseconds. */
const connectMs = 15_000;
const keepAliveMs = 60_000;

/** SSL_OP_CLEANSE_PLAINTEXT of OpenSSL 3, which Node does not name: what was received is wiped once it is read. */
const cleansePlaintext = 2;

type Target = { readonly host: string; readonly port: number; readonly allowsPrivate: boolean };

/** The upstream could not be reached or did not prove its name. The text is for the client. */
export class UpstreamError extends Error {
  override readonly name = "UpstreamError";
}

/** Connects without TLS, for a tunnel. @throws EgressError, UpstreamError */
export async function openTunnel({ host, port, allowsPrivate }: Target, resolve: Resolve): Promise<Socket> {
  const addresses = await resolveAddresses(host, allowsPrivate, resolve);
  for (const address of addresses) {
    const socket = connectTcp({ host: address, port });
    if (await opened(socket, "connect")) return socket.setKeepAlive(true, keepAliveMs).setNoDelay();
  }
  throw new UpstreamError(`cannot connect to ${host}, port ${port}: check that it is reachable from this machine`);
}

export class Upstreams {
  readonly #resolve: Resolve;
  readonly #secureContext: SecureContext;

  /**
   * @param ca PEM of roots beside the public ones, or null. The public ones are Node's own, named here: roots that
   * NODE_EXTRA_CA_CERTS or an OpenSSL configuration adds would be trusted with secrets otherwise.
   */
  constructor(resolve: Resolve, ca: string | null) {
    this.#resolve = resolve;
    const roots = ca === null ? [...rootCertificates] : [...rootCertificates, ca];
    this.#secureContext = createSecureContext({ ca: roots, minVersion: "TLSv1.2", secureOptions: cleansePlaintext });
  }

  get resolve(): Resolve {
    return this.#resolve;
  }

  /** Connects and completes the handshake. @throws EgressError, UpstreamError */
  async open(target: Target): Promise<ByteStream> {
    const tcp = await openTunnel(target, this.#resolve);
    const { host } = target;
    const socket = connectTls({
      socket: tcp,
      host,
      ...(isIP(host) === 0 && { servername: host }),
      secureContext: this.#secureContext,
      rejectUnauthorized: true, // NODE_TLS_REJECT_UNAUTHORIZED must not send a secret to anyone
      ALPNProtocols: ["http/1.1"],
    });
    if (await opened(socket, "secureConnect")) return new ByteStream(socket);
    throw new UpstreamError(
      `no trusted TLS connection to ${host}, port ${target.port}: its certificate must be valid for this name; for a private root start the server with --upstream-ca`,
    );
  }
}

/** Whether the connection came about in time; it is destroyed otherwise. */
function opened(socket: Socket | TLSSocket, event: "connect" | "secureConnect"): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (isOpen: boolean) => {
      clearTimeout(timer);
      socket.off(event, onOpen).off("close", onClose);
      if (!isOpen) socket.destroy();
      resolve(isOpen);
    };
    const onOpen = () => settle(true);
    const onClose = () => settle(false);
    const timer = setTimeout(onClose, connectMs);
    socket.on("error", () => {}); // a close follows
    socket.once(event, onOpen).once("close", onClose);
  });
}
