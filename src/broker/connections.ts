/** Connections at the broker's port: how many there may be, with and without a token, and which of them make room. */
import type { Socket } from "node:net";
import type { Session } from "./messages.js";
import { Refused } from "./refusal.js";

/** Most connections of a token and its child tokens. */
const mostOfTree = 64;

type Owner = Pick<Session, "id" | "tree">;

export class BrokerConnections {
  readonly #mostUnknown: number;
  readonly #mostKnown: number;
  /** Connections without a token yet, oldest first. */
  readonly #unknown = new Set<Socket>();
  readonly #known = new Map<Socket, Owner>();

  /** @param most a quarter of them at most have no token yet */
  constructor(most: number) {
    this.#mostUnknown = Math.ceil(most / 4);
    this.#mostKnown = most - this.#mostUnknown;
  }

  /** Takes a new connection. Where there are too many without a token, the oldest of them makes room. */
  add(socket: Socket): void {
    this.#unknown.add(socket);
    socket.once("close", () => {
      this.#unknown.delete(socket);
      this.#known.delete(socket);
    });
    const [oldest] = this.#unknown;
    if (this.#unknown.size <= this.#mostUnknown || oldest === undefined) return;
    this.#unknown.delete(oldest);
    oldest.destroy();
  }

  /** Assigns a connection to the session whose token it has sent. @throws Refused when there are too many */
  admit(socket: Socket, { id, tree }: Owner): void {
    if (socket.destroyed) return;
    const others = [...this.#known].filter(([one]) => one !== socket);
    const ofTree = others.filter(([, owner]) => owner.tree === tree).length;
    // Half of all at most, so that no tree takes the port from the others where few connections are possible.
    if (ofTree >= Math.min(mostOfTree, Math.ceil(this.#mostKnown / 2))) throw new Refused(full("of this token", 429));
    if (others.length >= this.#mostKnown) throw new Refused(full("at the broker", 503));
    this.#unknown.delete(socket);
    this.#known.set(socket, { id, tree });
  }

  /** Closes those of a session. */
  end(session: string): void {
    for (const [socket, { id }] of this.#known) if (id === session) socket.destroy();
  }
}

function full(where: string, status: 429 | 503) {
  const error = `too many connections ${where}: close some, then try again`;
  return { ok: false, status, code: status === 429 ? "RATE_LIMITED" : "UNAVAILABLE", error, retryAfter: 1 } as const;
}
