/** A TCP proxy in front of a database: breaks connections at the k-th message to it, cuts all, holds one, or falls silent. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { later } from "../../tools/rig/clean-up.js";
import { closedGate } from "./latch.js";

export type FragileProxy = {
  readonly port: number;
  /** At the k-th chunk of bytes to the database from now on, its connection breaks. */
  breakAt(k: number, when: When): void;
  /** The k-th chunk does not reach the database, nor any later one, until `repair`: their connections break. */
  breakFrom(k: number): void;
  /** Ends all faults; returns whether one has occurred. */
  repair(): boolean;
  /** Resets every connection. */
  cut(): void;
  /** The connection on which the statement of this name is sent next gets no further answer; the others continue. */
  loseAnswerTo(statement: string): void;
  /** Holds the next bytes to the database that contain the text, and what follows them on their connection. */
  hold(text: string): Held;
  /** As `hold`, of the answer to them. */
  holdAnswerTo(text: string): Held;
  /** Passes nothing on, in both directions, until `repair`; what was sent is lost, and new connections get no answer. */
  silence(): void;
};

/** `reached` resolves once there is something to hold. */
export type Held = { readonly reached: Promise<void>; release(): void };

/** Nothing of the chunk, its first half, or all of it reaches the database; no answer comes back. */
export type When = "before" | "half" | "after";

type Gate = {
  readonly text: string;
  readonly of: "request" | "answer";
  readonly reach: () => void;
  readonly released: Promise<void>;
};

type Plan = { left: number; readonly forGood: boolean; readonly when: When };

export async function startFragileProxy(to: number): Promise<FragileProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let plan: Plan | null = null;
  let occurred = false;
  let silent = false;
  let unanswered: string | null = null;
  const lost = new Set<Socket>();
  const loseAnswer = (client: Socket, chunk: Buffer) => {
    if (unanswered === null || !chunk.includes(unanswered)) return;
    lost.add(client);
    unanswered = null;
  };
  const gates = new Set<Gate>();
  /** Returns the gate at which this chunk waits. */
  const takeGate = (chunk: Buffer) => {
    const gate = [...gates].find(({ text }) => chunk.includes(text));
    if (gate !== undefined) gates.delete(gate);
    return gate;
  };
  /** Whether this chunk breaks its connection. */
  const breaks = () => {
    if (plan === null || --plan.left > 0) return false;
    occurred = true;
    if (!plan.forGood) plan = null;
    return true;
  };
  const listener = createServer((client) => {
    const database = connect(to, "127.0.0.1");
    const pair = [client, database] as const;
    pairs.add(pair);
    const pass = (chunk: Buffer) => {
      const when = plan?.when ?? "before";
      if (breaks()) breakPair(pair, chunk, when);
      else database.write(chunk);
    };
    client.on("data", (chunk) => {
      if (silent) return;
      loseAnswer(client, chunk);
      const gate = takeGate(chunk);
      if (gate?.of === "request") return holdBack(gate, client, () => pass(chunk));
      pass(chunk);
      if (gate !== undefined) holdBack(gate, database);
    });
    database.on("data", (chunk) => silent || lost.has(client) || client.write(chunk));
    for (const socket of pair) {
      socket.setNoDelay(true);
      socket.on("error", () => {});
      socket.on("close", () => {
        pairs.delete(pair);
        for (const each of pair) each.end();
      });
    }
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const cut = () => {
    for (const pair of pairs) reset(pair);
  };
  later(async () => {
    cut();
    await new Promise((resolve) => listener.close(resolve));
  });
  const arm = (left: number, forGood: boolean, when: When) => {
    plan = { left, forGood, when };
    occurred = false;
  };
  const hold = (text: string, of: Gate["of"]): Held => {
    const [reached, released] = [closedGate(), closedGate()];
    gates.add({ text, of, reach: reached.open, released: released.passed });
    return { reached: reached.passed, release: released.open };
  };
  return {
    port: (listener.address() as AddressInfo).port,
    breakAt: (k, when) => arm(k, false, when),
    breakFrom: (k) => arm(k, true, "before"),
    repair() {
      plan = null;
      if (silent) cut();
      silent = false;
      return occurred;
    },
    cut,
    hold: (text) => hold(text, "request"),
    holdAnswerTo: (text) => hold(text, "answer"),
    loseAnswerTo(statement) {
      unanswered = statement;
    },
    silence() {
      silent = true;
    },
  };
}

/** Reads nothing more from the socket until it is released, and then passes on what came last. */
function holdBack({ reach, released }: Gate, from: Socket, pass: () => unknown = () => {}): void {
  from.pause();
  reach();
  void released.then(() => {
    pass();
    from.resume();
  });
}

function breakPair([client, database]: readonly [Socket, Socket], chunk: Buffer, when: When): void {
  client.resetAndDestroy();
  if (when === "before") database.resetAndDestroy();
  else database.end(when === "half" ? chunk.subarray(0, chunk.length >>> 1) : chunk);
}

function reset(pair: readonly [Socket, Socket]): void {
  for (const socket of pair) socket.resetAndDestroy();
}
