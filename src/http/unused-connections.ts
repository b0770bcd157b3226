/** Connections without a request so far: Node counts them as busy, but a stop need not wait for them. */
import type { Server } from "node:https";
import type { Socket } from "node:net";

export class UnusedConnections {
  /** By the client's address and port, the only thing that a TLS socket and its underlying socket have in common. */
  readonly #sockets = new Map<string, Socket>();

  constructor(server: Server) {
    server.on("connection", (socket: Socket) => this.#add(socket));
    server.on("secureConnection", (socket) => {
      const name = nameOf(socket);
      socket.once("data", () => this.#sockets.delete(name));
    });
  }

  close(): void {
    for (const socket of this.#sockets.values()) socket.destroy();
  }

  #add(socket: Socket): void {
    const name = nameOf(socket);
    this.#sockets.set(name, socket);
    socket.once("close", () => {
      if (this.#sockets.get(name) === socket) this.#sockets.delete(name);
    });
  }
}

function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
