/**
 * HTTP listener on a Unix socket: no TLS, and connections of its own, so that nothing on TCP takes them away. What comes
 * is read into one buffer, which is wiped at once.
 */
import { createServer, type Server } from "node:http";
import { type OnReadOpts, Socket, type SocketConstructorOpts } from "node:net";
import type { MessageClasses } from "./app.js";
import { addPipeline } from "./connections.js";
import { closeStalled, type Drainable, type Limits } from "./listener.js";
import { refuseMalformedRequests } from "./malformed.js";
import { ownMemory } from "./memory.js";

/** Only the owner can take them. */
const maxConnections = 256;

export function createLocalListener(messages: MessageClasses, limits: Limits): Drainable {
  const server = createServer({ ...messages, ...limits, requireHostHeader: false });
  server.maxConnections = maxConnections;
  closeStalled(server, limits.sendTimeout);
  refuseMalformedRequests(server, limits);
  const unused = new Set<Socket>();
  wrapConnections(server, wipingSocket, (socket) => {
    addPipeline(socket);
    unused.add(socket);
    socket.once("data", () => unused.delete(socket));
    socket.once("close", () => unused.delete(socket));
  });
  const closeUnused = () => {
    for (const socket of unused) socket.destroy();
  };
  return { server, connections: { closeUnused } };
}

/** Rejects with the system's error. */
export function listenLocally({ server }: Drainable, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject).listen(path, resolve);
  });
}

/** Gives Node's listener for connections another socket than the accepted one. `then` listens to it after Node. */
function wrapConnections(server: Server, wrap: (accepted: Socket) => Socket, then: (socket: Socket) => void): void {
  const listeners = server.listeners("connection");
  server.removeAllListeners("connection").on("connection", (accepted) => {
    const socket = wrap(accepted);
    for (const listener of listeners) Reflect.apply(listener, server, [socket]);
    then(socket);
  });
}

const received = Buffer.from(ownMemory(64 * 1024).buffer);

/**
 * Returns a socket on the accepted one's connection that reads into our buffer. DANGER: by default Node reads into new
 * memory each time, copies what came, and frees the memory with the plaintext in it; a scan of the process found every
 * passphrase there (Node 20 and 24). `onread` avoids that. It is documented, but not for accepted sockets: hence the
 * handle, which is not.
 */
function wipingSocket(accepted: Socket & { _handle?: unknown }): Socket {
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
  const piece = Buffer.from(ownMemory(length).buffer);
  received.copy(piece, 0, 0, length);
  received.fill(0, 0, length);
  return piece;
}
