/** The service on the user's own session bus, in place of a bus of ours. */
import { connect, type Socket } from "node:net";
import { isAbsolute, join } from "node:path";
import { CommandFailure, systemCode } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { printable } from "../../cli/kit/output.js";
import { busName, replyTo, type Service, Stream } from "./bus.js";
import { type Message, messageTypes, noReplyExpected, type Value } from "./wire.js";

/** Flags of RequestName. */
const [allowsReplacement, replaces, doesNotQueue] = [1, 2, 4];
const isOwner = 1;

/** Takes the name of the service. `ended`: resolves when the bus or another program takes it back. */
export async function joinSessionBus(io: Io, service: Service, replace: boolean) {
  const link = new Link(await open(io), service);
  await link.greet(io.uid ?? 0);
  await link.call("AddMatch", "s", [`type='signal',sender='${busName}',member='NameOwnerChanged',arg2=''`]);
  const flags = allowsReplacement | doesNotQueue | (replace ? replaces : 0);
  if ((await link.call("RequestName", "su", [service.name, flags])) === isOwner) return link;
  const owner = await link.call("GetNameOwner", "s", [service.name]);
  const pid = await link.call("GetConnectionUnixProcessID", "s", [owner]);
  link.close();
  const remedy = replace ? "it does not permit a replacement: end it first" : "end it, or use --replace";
  throw new CommandFailure("conflict", `another program serves ${service.name} (pid ${pid}): ${remedy}`);
}

/** Our connection to the bus. */
class Link {
  readonly ended: Promise<void>;
  readonly #stream: Stream;
  readonly #service: Service;
  readonly #calls = new Map<number, (reply: Message) => void>();
  #handshake: ((line: string) => void) | null = null;

  constructor(socket: Socket & { receive?: (bytes: Uint8Array) => void }, service: Service) {
    this.#service = service;
    this.#stream = new Stream(socket, (message, bytes) => void this.#take(message).finally(() => bytes.fill(0)));
    this.ended = new Promise((resolve) => void socket.once("close", () => resolve()));
    socket.receive = (bytes) => {
      if (this.#handshake === null) return this.#stream.receive(bytes);
      this.#handshake(Buffer.from(bytes).toString("latin1"));
    };
    service.emit = (signal) => {
      this.#stream.send({ ...signal, type: messageTypes.signal, flags: noReplyExpected });
    };
  }

  close(): void {
    this.#stream.socket.destroy();
  }

  /** @throws CommandFailure */
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
    await this.call("Hello", "", []);
  }

  /** Calls a method of the bus. @throws CommandFailure */
  async call(member: string, signature: string, body: readonly Value[]): Promise<Value> {
    const about = { path: "/org/freedesktop/DBus", interface: busName, destination: busName };
    const serial = this.#stream.send({ ...about, type: messageTypes.call, flags: 0, member, signature, body });
    const replied = new Promise<Message | null>((resolve) => this.#calls.set(serial, resolve));
    const reply = await Promise.race([replied, this.ended.then(() => null)]);
    if (reply?.type === messageTypes.reply) return reply.body[0] ?? "";
    throw new CommandFailure(
      "unexpected",
      `the session bus refused ${member}: ${printable(String(reply?.body[0] ?? ""))}`,
    );
  }

  async #take(message: Message): Promise<void> {
    const { type, member, body, sender = "", replySerial = 0 } = message;
    if (type === messageTypes.call) return this.#serve(message, sender);
    if (type !== messageTypes.signal) {
      this.#calls.get(replySerial)?.(message);
      this.#calls.delete(replySerial);
    } else if (sender === busName && member === "NameLost" && body[0] === this.#service.name) this.close();
    else if (sender === busName && member === "NameOwnerChanged") this.#service.gone(String(body[0]));
  }

  async #serve(message: Message, sender: string): Promise<void> {
    const reply = await replyTo(message, () => this.#service.call(message, sender));
    if ((message.flags & noReplyExpected) === 0) this.#stream.send({ ...reply, destination: sender });
    reply.wipe?.();
  }
}

/** Connects to the first address of the session bus that works, and reads into memory that is wiped. @throws CommandFailure */
async function open(io: Io): Promise<Socket> {
  const { DBUS_SESSION_BUS_ADDRESS: given = "", XDG_RUNTIME_DIR: runtime = "" } = io.env;
  const usual = isAbsolute(runtime) ? `unix:path=${join(runtime, "bus")}` : "";
  const paths = (given || usual).split(";").flatMap(socketPath);
  let problem = "DBUS_SESSION_BUS_ADDRESS names no socket of one";
  for (const path of paths) {
    try {
      return await connected(path);
    } catch (error) {
      problem = `${printable(path.replace("\0", "@"))} cannot be used (${systemCode(error) ?? "unknown reason"})`;
    }
  }
  throw new CommandFailure(
    "unreachable",
    `there is no session bus: ${problem}; without one, use  strongroom keyring -- COMMAND`,
  );
}

function socketPath(address: string): readonly string[] {
  const [, kind = "", value = ""] = /^unix:(?:.*,)?(path|abstract)=([^,]*)/.exec(address) ?? [];
  if (value === "") return [];
  const path = decodeURIComponent(value);
  return [kind === "abstract" ? `\0${path}` : path];
}

function connected(path: string): Promise<Socket> {
  const buffer = new Uint8Array(new ArrayBuffer(64 * 1024));
  return new Promise((resolve, reject) => {
    const callback = (length: number): boolean => {
      socket.receive?.(buffer.subarray(0, length));
      return true;
    };
    const socket: Socket & { receive?: (bytes: Uint8Array) => void } = connect({ path, onread: { buffer, callback } });
    socket.once("connect", () => resolve(socket.off("error", reject))).once("error", reject);
  });
}
