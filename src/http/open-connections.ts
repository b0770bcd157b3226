/**
 * Open connections: which are still without a request, and which to close when there are too many. Connections that never
 * presented a valid token get a quarter of the places; beyond, the oldest of them is closed. So a client with the token
 * always gets in, and clients without one cost a bounded amount of memory.
 */
import type { Server } from "node:http";
import type { Socket } from "node:net";

const authenticate = Symbol("authenticate");
type Watched = Socket & { [authenticate]?: (() => void) | undefined };

/** Exempts the connection from being closed when there are too many. */
export function markAuthenticated(socket: Watched): void {
  socket[authenticate]?.();
  socket[authenticate] = undefined;
}

export function isAuthenticated(socket: Watched): boolean {
  return socket[authenticate] === undefined;
}

export class OpenConnections {
  readonly #limit: number;
  readonly #onFull: () => void;
  readonly #open = new Set<Socket>();
  /** Oldest first. */
  readonly #unauthenticated = new Set<Socket>();
  /** By the client's address and port, the only thing that a TLS socket and its underlying socket have in common. */
  readonly #unused = new Map<string, Socket>();

  /** `onFull` is called whenever a connection is closed because there are too many. */
  constructor(server: Server, limit: number, onFull: () => void) {
    this.#limit = limit;
    this.#onFull = onFull;
    server.on("connection", (socket: Socket) => this.#add(socket));
    server.on("secureConnection", (socket: Socket) => this.#secured(socket));
  }

  /** Node counts connections without a request as busy, but a stop need not wait for them. */
  closeUnused(): void {
    for (const socket of this.#unused.values()) socket.destroy();
  }

  #add(socket: Socket): void {
    const name = nameOf(socket);
    this.#open.add(socket);
    this.#unauthenticated.add(socket);
    this.#unused.set(name, socket);
    socket.once("close", () => {
      this.#forget(socket);
      if (this.#unused.get(name) === socket) this.#unused.delete(name);
    });
    const { size } = this.#unauthenticated;
    if (this.#open.size > this.#limit || size > Math.ceil(this.#limit / 4)) this.#closeOne();
  }

  #secured(socket: Watched): void {
    const name = nameOf(socket);
    const underlying = this.#unused.get(name);
    if (underlying === undefined) return;
    socket[authenticate] = () => this.#unauthenticated.delete(underlying);
    socket.once("data", () => this.#unused.delete(name));
  }

  /** The newest connection is among the unauthenticated: when all others are authenticated, it is closed itself. */
  #closeOne(): void {
    const [oldest] = this.#unauthenticated;
    if (oldest === undefined) return;
    this.#forget(oldest);
    oldest.destroy();
    this.#onFull();
  }

  #forget(socket: Socket): void {
    this.#open.delete(socket);
    this.#unauthenticated.delete(socket);
  }
}

function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
