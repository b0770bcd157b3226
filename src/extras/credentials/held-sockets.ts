/** Sockets whose connections wait in the kernel's queue until a value is there; see socket-thread.ts. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chownSync, linkSync, lstatSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { removeStaleSocket } from "../../cli/kit/agents/stale-socket.js";
import { CommandFailure, systemCode } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { printable } from "../../cli/kit/output.js";
import { credentialsThreadFile } from "../../program-files.js";
import type { Order, Report, ThreadStart } from "./socket-thread.js";

/** `bound`: the name under which the kernel knows the socket; the file was made there, and linked to `path`. */
type HeldSocket = { readonly name: string; readonly path: string; readonly bound: string; readonly inode: number };

/** Length of the names under which sockets are bound, with up to a thousand of them. */
export const boundNameBytes = ".999-ffffff".length;

/** State of a socket that connects to one of ours, and is not accepted yet, in /proc/net/unix (SS_CONNECTING). */
const connecting = "02";

export class HeldSockets {
  readonly #io: Io;
  readonly #thread: Worker;
  readonly #wake: Int32Array;
  readonly #sockets: Map<string, HeldSocket>;
  #held: readonly string[] = [];

  private constructor(io: Io, thread: Worker, wake: Int32Array, sockets: readonly HeldSocket[]) {
    this.#io = io;
    this.#thread = thread;
    this.#wake = wake;
    this.#sockets = new Map(sockets.map((socket) => [socket.name, socket]));
    thread.on("message", ({ held }: Report) => {
      this.#held = held;
    });
  }

  /**
   * Listens. A file that is there stays; only a socket that no process listens on is removed.
   * @param group whose members may connect; null: the owner alone
   * @throws CommandFailure conflict, unexpected
   */
  static async open(io: Io, directory: string, names: readonly string[], group: number | null): Promise<HeldSockets> {
    const mark = randomBytes(3).toString("hex");
    const places = names.map((name, i) => ({
      name,
      path: join(directory, name),
      bound: join(directory, `.${i}-${mark}`),
    }));
    for (const { path } of places) if ((await removeStaleSocket(path)) !== null) throw inUse(path);
    const wake = new Int32Array(new SharedArrayBuffer(4));
    const start: ThreadStart = { wake, sockets: places.map(({ name, bound }) => ({ name, path: bound })) };
    const before = io.umask(group === null ? 0o177 : 0o117);
    const thread = new Worker(credentialsThreadFile, { workerData: start, env: {}, execArgv: [], name: "sockets" });
    const sockets: HeldSocket[] = [];
    try {
      await once(thread, "message");
      for (const place of places) sockets.push(linked(place, group));
      return new HeldSockets(io, thread, wake, sockets);
    } catch (error) {
      await thread.terminate();
      for (const socket of sockets) removeOwn(socket);
      if (error instanceof CommandFailure) throw error;
      throw new CommandFailure("unexpected", `no socket can be made in ${printable(directory)} (${systemCode(error)})`);
    } finally {
      for (const { bound } of places) rmSync(bound, { force: true });
      io.umask(before);
    }
  }

  get names(): readonly string[] {
    return [...this.#sockets.keys()];
  }

  /** Returns the names of sockets that a program waits at. One in another network namespace shows only after `look`. */
  async waiting(): Promise<readonly string[]> {
    const table = this.#io.platform === "linux" ? await readFile("/proc/net/unix", "latin1") : "";
    const bound = new Set(
      table.split("\n").flatMap((line) => {
        const [, , , , , state, inode, ...path] = line.trim().split(/ +/);
        return state === connecting && inode === "0" ? [path.join(" ")] : [];
      }),
    );
    return [...this.#sockets.values()].flatMap((socket) =>
      bound.has(socket.bound) || this.#held.includes(socket.name) ? [socket.name] : [],
    );
  }

  /** Sends each value to all that wait at its socket. The values are moved away. */
  serve(values: ReadonlyMap<string, Uint8Array<ArrayBuffer>>): void {
    for (const [name, value] of values) this.#post({ order: "serve", name, value }, [value.buffer]);
    this.#notify();
  }

  /** Accepts what waits, so that `waiting` has it. */
  look(): void {
    this.#post({ order: "look" });
    this.#notify();
  }

  /** Removes a socket: what waits there is reset. */
  close(name: string): void {
    const socket = this.#sockets.get(name);
    if (socket === undefined) return;
    this.#sockets.delete(name);
    removeOwn(socket);
    this.#post({ order: "close", name });
    this.#notify();
  }

  /** Removes the sockets: what waits there is reset. */
  async end(): Promise<void> {
    for (const socket of this.#sockets.values()) removeOwn(socket);
    const ended = once(this.#thread, "exit");
    this.#post({ order: "end" });
    this.#notify();
    await ended;
  }

  #post(order: Order, moved: readonly ArrayBuffer[] = []): void {
    this.#thread.postMessage(order, moved);
  }

  #notify(): void {
    Atomics.store(this.#wake, 0, 1);
    Atomics.notify(this.#wake, 0);
  }
}

type Place = Omit<HeldSocket, "inode">;

/** Gives a socket its name, which no other file may have. */
function linked(place: Place, group: number | null): HeldSocket {
  const { path, bound } = place;
  if (group !== null) chownSync(bound, -1, group);
  try {
    linkSync(bound, path);
  } catch (error) {
    if (systemCode(error) === "EEXIST") throw inUse(path);
    throw error;
  }
  return { ...place, inode: lstatSync(path).ino };
}

function inUse(path: string): CommandFailure {
  return new CommandFailure(
    "conflict",
    `${printable(path)} is already there: end the program that uses it, or name another --dir`,
  );
}

function removeOwn({ path, inode }: HeldSocket): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.ino === inode) rmSync(path, { force: true });
}
