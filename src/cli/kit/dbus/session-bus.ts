/** Connection of a client to the user's session bus (D-Bus specification, "Message Bus"). */
import { connect, type Socket } from "node:net";
import { isAbsolute, join } from "node:path";
import { CommandFailure } from "../errors.js";
import type { Io } from "../io.js";
import { Stream } from "./stream.js";
import { busName, busPath, type Message, messageTypes, type Value } from "./wire.js";

/** Returns the paths of the bus's sockets that the environment names, in the form of `connect`. */
export function sessionBusPaths({ env }: Pick<Io, "env">): readonly string[] {
  const { DBUS_SESSION_BUS_ADDRESS: given = "", XDG_RUNTIME_DIR: runtime = "" } = env;
  const usual = isAbsolute(runtime) ? `unix:path=${join(runtime, "bus")}` : "";
  return (given || usual).split(";").flatMap(socketPath);
}

function socketPath(address: string): readonly string[] {
  const [, kind = "", value = ""] = /^unix:(?:.*,)?(path|abstract)=([^,]*)/.exec(address) ?? [];
  if (value === "") return [];
  const path = decodeURIComponent(value);
  return [kind === "abstract" ? `\0${path}` : path];
}

type WipingSocket = Socket & { receive?: (bytes: Uint8Array) => void };

export class SessionBus {
  readonly ended: Promise<void>;
  /** Takes calls and signals, whose bytes are wiped after it. */
  take: (message: Message) => Promise<void> = async () => {};
  readonly #stream: Stream;
  readonly #calls = new Map<number, (reply: Message) => void>();
  #handshake: ((line: string) => void) | null = null;

  private constructor(socket: WipingSocket) {
    this.#stream = new Stream(socket, (message, bytes) => void this.#receive(message).finally(() => bytes.fill(0)));
    this.ended = new Promise((resolve) => void socket.once("close", () => resolve()));
    socket.receive = (bytes) => {
      if (this.#handshake === null) return this.#stream.receive(bytes);
      this.#handshake(Buffer.from(bytes).toString("latin1"));
    };
  }

  /** Connects, and reads into memory that is wiped. @throws the system's error */
  static connect(path: string): Promise<SessionBus> {
    const buffer = new Uint8Array(new ArrayBuffer(64 * 1024));
    return new Promise((resolve, reject) => {
      const callback = (length: number): boolean => {
        socket.receive?.(buffer.subarray(0, length));
        return true;
      };
      const socket: WipingSocket = connect({ path, onread: { buffer, callback } });
      socket.once("connect", () => resolve(new SessionBus(socket.off("error", reject)))).once("error", reject);
    });
  }

  /** Authenticates, and gets a name. @throws CommandFailure */
  async greet(uid: number): Promise<void> {
    const { socket } = this.#stream;
    const line = new Promise<string>((resolve) => {
      this.#handshake = resolve;
    });
    socket.write(`\0AUTH EXTERNAL ${Buffer.from(String(uid)).toString("hex")}\r\n`);
    const answer = await Promise.race([line, this.ended.then(() => "")]);
    if (!answer.startsWith("OK ")) throw new CommandFailure("unexpected", "the session bus refuses this user");
    this.#handshake = null;
    socket.write("BEGIN\r\n");
    await this.call(busName, busPath, "Hello", "", []);
  }

  /**
   * Calls a method in the interface that has the program's name; returns the reply or the error.
   * @throws CommandFailure where the connection ends first
   */
  async call(name: string, path: string, member: string, signature: string, body: readonly Value[]): Promise<Message> {
    const about = { path, interface: name, destination: name, member, signature, body };
    const serial = this.send({ ...about, type: messageTypes.call, flags: 0 });
    const replied = new Promise<Message>((resolve) => this.#calls.set(serial, resolve));
    const reply = await Promise.race([replied, this.ended.then(() => null)]);
    if (reply !== null) return reply;
    throw new CommandFailure("unexpected", "the connection to the session bus has ended");
  }

  send(message: Omit<Message, "serial">): number {
    return this.#stream.send(message);
  }

  close(): void {
    this.#stream.socket.destroy();
  }

  async #receive(message: Message): Promise<void> {
    const { type, replySerial = 0 } = message;
    if (type === messageTypes.call || type === messageTypes.signal) return this.take(message);
    this.#calls.get(replySerial)?.(message);
    this.#calls.delete(replySerial);
  }
}
