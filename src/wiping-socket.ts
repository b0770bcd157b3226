/** Accepted sockets that read into memory of ours, which can be wiped. */
import { type OnReadOpts, Socket, type SocketConstructorOpts } from "node:net";
import { copySecret } from "../workers/registers.js";

const received = Buffer.from(new ArrayBuffer(64 * 1024));

/**
 * Returns a socket on the accepted one's connection that reads into our buffer. DANGER: by default Node reads into new
 * memory each time, copies what came, and frees the memory with the plaintext in it; a scan of the process found every
 * passphrase there (Node 20 and 24). `onread` avoids that. It is documented, but not for accepted sockets: hence the
 * handle, which is not.
 */
export function wipingSocket(accepted: Socket & { _handle?: unknown }): Socket {
  const options: SocketConstructorOpts & { readonly handle: unknown; readonly onread: OnReadOpts } = {
    handle: accepted._handle,
    allowHalfOpen: true,
    onread: { buffer: received, callback: (length) => socket.push(takeReceived(length)) },
  };
  accepted._handle = null;
  const socket: Socket = new Socket(options);
  socket.once("close", () => accepted.destroy()); // until then it counts as one of the server's connections
  return socket;
}

function takeReceived(length: number): Buffer {
  const piece = Buffer.from(new ArrayBuffer(length));
  copySecret(piece, received.subarray(0, length));
  received.fill(0, 0, length);
  return piece;
}
