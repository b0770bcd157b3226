/**
 * Notifications on the user's desktop, sent on the session bus (D-Bus): other users could read the arguments of a program such as
 * notify-send.
 */
import { connect, type Socket } from "node:net";
import { CommandFailure } from "../errors.js";
import type { Io } from "../io.js";

/** How long a notification is shown, in milliseconds. */
const shownMs = 60_000;

/** How long the desktop may take to answer, in milliseconds. */
const patienceMs = 10_000;

/** Returns the path of the session bus's socket, in the form of `connect`. @throws CommandFailure usage, where there is none */
export function findSessionBus({ env }: Pick<Io, "env">): string {
  const { DBUS_SESSION_BUS_ADDRESS: named, XDG_RUNTIME_DIR: directory } = env;
  if (named === undefined && directory !== undefined) return `${directory}/bus`;
  const [, kind, place = ""] = /(?:^|;)unix:(?:[^;]*,)?(path|abstract)=([^,;]+)/.exec(named ?? "") ?? [];
  if (kind !== undefined) return `${kind === "abstract" ? "\0" : ""}${decodeURIComponent(place)}`;
  throw new CommandFailure("usage", "--notify needs the session bus of a desktop: DBUS_SESSION_BUS_ADDRESS names none");
}

/** Shows a notification. @throws Error that says why the desktop shows none */
export async function notify(bus: string, { clock, uid }: Io, summary: string, body: string): Promise<void> {
  const socket = connect(bus);
  const cancel = clock.after(patienceMs, () => socket.destroy(new Error("the session bus does not answer")));
  try {
    const input = new Input(socket);
    socket.write(`\0AUTH EXTERNAL ${Buffer.from(String(uid ?? 0)).toString("hex")}\r\n`);
    if (!(await input.line()).startsWith("OK ")) throw new Error("the session bus refuses this user");
    socket.write("BEGIN\r\n");
    socket.write(call(1, busName, "/org/freedesktop/DBus", "Hello", "", new Message()));
    socket.write(
      call(2, notifications, "/org/freedesktop/Notifications", "Notify", "susssasa{sv}i", arguments_(summary, body)),
    );
    await input.reply(); // Hello's
    await input.reply();
  } finally {
    cancel();
    socket.destroy();
  }
}

const busName = "org.freedesktop.DBus";
const notifications = "org.freedesktop.Notifications";

/** The body is markup. Numbers: the notification that it replaces, and how long it is shown; lists: buttons and hints. */
function arguments_(summary: string, body: string): Message {
  const markup = body.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const message = new Message().text("Strongroom").uint32(0).text("").text(summary).text(markup);
  return message.uint32(0).uint32(0).align(8).uint32(shownMs);
}

/** Types of messages, see the D-Bus specification, "Message Protocol". */
const [methodCall, methodReturn, error] = [1, 2, 3];
const bigEndian = 0x42;

/** Returns the bytes of a call whose interface has the name of its destination. */
function call(
  serial: number,
  name: string,
  path: string,
  member: string,
  signature: string,
  body: Message,
): Uint8Array {
  const fields = new Message();
  for (const [code, type, value] of [
    [1, "o", path],
    [2, "s", name],
    [3, "s", member],
    [6, "s", name],
  ] as const) {
    fields.align(8).byte(code).signature(type).text(value);
  }
  if (signature !== "") fields.align(8).byte(8).signature("g").signature(signature);
  const head = new Message().byte("l".charCodeAt(0)).byte(methodCall).byte(0).byte(1);
  head.uint32(body.bytes().length).uint32(serial).uint32(fields.bytes().length);
  return Buffer.concat([head.append(fields.bytes()).align(8).bytes(), body.bytes()]);
}

/** A message in the making: values aligned to their size, little-endian. */
class Message {
  #bytes = Buffer.alloc(0);

  bytes(): Buffer {
    return this.#bytes;
  }

  append(bytes: Uint8Array): this {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    return this;
  }

  align(size: number): this {
    return this.append(Buffer.alloc((size - (this.#bytes.length % size)) % size));
  }

  byte(value: number): this {
    return this.append(Buffer.of(value));
  }

  uint32(value: number): this {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    return this.align(4).append(bytes);
  }

  text(value: string): this {
    const bytes = Buffer.from(`${value}\0`);
    return this.uint32(bytes.length - 1).append(bytes);
  }

  signature(value: string): this {
    return this.byte(value.length).append(Buffer.from(`${value}\0`));
  }
}

/** Longest message that the bus may send, in bytes. */
const maxMessage = 1024 * 1024;

/** Reader of the bus: lines first, then messages. */
class Input {
  readonly #pieces: AsyncIterator<Buffer>;
  #bytes = Buffer.alloc(0);

  constructor(socket: Socket) {
    this.#pieces = socket[Symbol.asyncIterator]();
  }

  async line(): Promise<string> {
    while (!this.#bytes.includes("\r\n")) await this.#receive(this.#bytes.length + 1);
    return this.#take(this.#bytes.indexOf("\r\n") + 2).toString("latin1");
  }

  /** Reads up to the next reply, whose content does not matter. @throws Error when it is an error */
  async reply(): Promise<void> {
    for (;;) {
      await this.#receive(16);
      const read = (at: number) =>
        this.#bytes[0] === bigEndian ? this.#bytes.readUInt32BE(at) : this.#bytes.readUInt32LE(at);
      const [type, length] = [this.#bytes[1], 16 + Math.ceil(read(12) / 8) * 8 + read(4)];
      if (length > maxMessage) throw new Error("the session bus sends too long a message");
      await this.#receive(length);
      this.#take(length);
      if (type === error) throw new Error("no program shows notifications on this desktop");
      if (type === methodReturn) return;
    }
  }

  async #receive(count: number): Promise<void> {
    while (this.#bytes.length < count) {
      const { value, done } = await this.#pieces.next();
      if (done === true) throw new Error("the session bus closed the connection");
      this.#bytes = Buffer.concat([this.#bytes, value as Buffer]);
    }
  }

  #take(count: number): Buffer {
    const taken = this.#bytes.subarray(0, count);
    this.#bytes = this.#bytes.subarray(count);
    return taken;
  }
}
