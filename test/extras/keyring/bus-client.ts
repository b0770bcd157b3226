/** A client of the keyring's bus, and keyrings in the tests' process. */
import { spawn } from "node:child_process";
import {
  createCipheriv,
  createDecipheriv,
  createDiffieHellman,
  createHmac,
  type DiffieHellman,
  getDiffieHellman,
  randomBytes,
} from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type Message,
  messageLength,
  messageTypes,
  readMessage,
  type Value,
  Variant,
  writeMessage,
} from "../../../src/cli/kit/dbus/wire.js";
import { later, temporaryDirectory } from "../../../tools/rig/clean-up.js";
import { collect, environment, mainArguments, node } from "../../../tools/rig/process.js";
import type { TestServer } from "../../../tools/rig/server.js";
import { runToItsEnd, stringIo } from "../../../tools/rig/string-io.js";

export const root = "/org/freedesktop/secrets";
export const loginPath = `${root}/collection/login`;

/** Starts the command in the tests' process; returns its socket. */
export async function startKeyring(server: TestServer, ...flags: readonly string[]) {
  return startKeyringIn(server, {}, ...flags);
}

/** Like `startKeyring`, with more variables. */
export async function startKeyringIn(
  server: TestServer,
  more: Readonly<Record<string, string>>,
  ...flags: readonly string[]
) {
  const socket = join(temporaryDirectory(), "bus");
  return { socket, ...(await start(server, ["--foreground", "--socket", socket, ...flags], more)) };
}

/** Starts the command on the session bus of this address, in the tests' process. */
export function startOnSessionBus(server: TestServer, address: string, ...flags: readonly string[]) {
  return start(server, ["--session", ...flags], { DBUS_SESSION_BUS_ADDRESS: address });
}

async function start(server: TestServer, flags: readonly string[], more: Readonly<Record<string, string>> = {}) {
  const io = stringIo({ env: environment({ STRONGROOM_HOME: server.home, ...more }) });
  const ended = runToItsEnd(["keyring", ...flags], io);
  const stop = async () => {
    io.events.emit("SIGTERM");
    await ended;
  };
  later(stop);
  const hasPrinted = () => Object.values(io.printed()).some(({ length }) => length > 0);
  while (!hasPrinted() && io.exitCode === 0) await Promise.race([ended, sleep(5)]);
  return { stop, io, ended };
}

/** Starts the command as a process of its own, which ends with the test; returns its socket. */
export async function spawnKeyring(
  home: string,
  flags: readonly string[] = [],
  more: Readonly<Record<string, string>> = {},
) {
  const socket = join(temporaryDirectory(), "bus");
  const args = [...mainArguments, "keyring", "--foreground", "--socket", socket, ...flags];
  const child = spawn(node, args, { env: environment({ STRONGROOM_HOME: home, ...more }), timeout: 600_000 });
  const { ended, stdout, stderr } = collect(child);
  later(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  while (stdout() === "") if ((await Promise.race([ended, sleep(5)])) !== undefined) throw new Error(stderr());
  return { child, socket, ended };
}

/** An error that a call got. */
export class CallError extends Error {}

export class BusClient {
  readonly socket: Socket;
  readonly signals: Message[] = [];
  readonly #replies = new Map<number, (message: Message) => void>();
  #serial = 0;
  #held = Buffer.alloc(0);

  private constructor(socket: Socket) {
    this.socket = socket;
  }

  /** Connects, authenticates and says hello. */
  static async to(path: string): Promise<BusClient> {
    const socket = connect(path);
    later(() => void socket.destroy());
    await once(socket, "connect");
    socket.on("error", () => {});
    socket.write(`\0AUTH EXTERNAL ${Buffer.from(String(process.getuid?.() ?? 0)).toString("hex")}\r\n`);
    await Promise.race([
      once(socket, "data"),
      once(socket, "close").then(() => Promise.reject(new CallError("closed"))),
    ]);
    socket.write("BEGIN\r\n");
    const client = new BusClient(socket);
    socket.on("data", (bytes: Buffer) => client.#take(bytes));
    socket.once("close", () => client.#end());
    await client.call("/org/freedesktop/DBus", "org.freedesktop.DBus.Hello", "", []);
    return client;
  }

  /** Calls a method, of the service unless it is the bus's; returns the values. @throws CallError with the error's name */
  async call(path: string, method: string, signature: string, body: readonly Value[]): Promise<readonly Value[]> {
    const at = method.lastIndexOf(".");
    const [name, member] = [method.slice(0, at), method.slice(at + 1)];
    const isBus = path === "/org/freedesktop/DBus";
    const destination = isBus ? "org.freedesktop.DBus" : "org.freedesktop.secrets";
    if (this.socket.destroyed) throw new CallError("closed");
    const serial = ++this.#serial;
    const about = { path, interface: name, member, destination, signature, body };
    const replied = new Promise<Message>((resolve) => this.#replies.set(serial, resolve));
    this.socket.write(writeMessage({ ...about, type: messageTypes.call, flags: 0, serial }));
    const reply = await replied;
    if (reply.type === messageTypes.error) throw new CallError(`${reply.errorName}`);
    return reply.body;
  }

  async property(path: string, kind: string, name: string): Promise<Value> {
    const body = [`org.freedesktop.Secret.${kind}`, name];
    const [value] = await this.call(path, "org.freedesktop.DBus.Properties.Get", "ss", body);
    return value instanceof Variant ? value.value : "";
  }

  #take(bytes: Buffer): void {
    this.#held = Buffer.concat([this.#held, bytes]);
    while (this.#held.length >= 16) {
      const length = messageLength(this.#held, 2 ** 27);
      if (this.#held.length < length) return;
      const message = readMessage(Uint8Array.from(this.#held.subarray(0, length)));
      this.#held = this.#held.subarray(length);
      if (message.type === messageTypes.signal) this.signals.push(message);
      this.#replies.get(message.replySerial ?? 0)?.(message);
      this.#replies.delete(message.replySerial ?? 0);
    }
  }

  #end(): void {
    const gone = { type: messageTypes.error, flags: 0, serial: 1, signature: "", body: [], errorName: "closed" };
    for (const reply of this.#replies.values()) reply(gone);
  }
}

export type Kind = "plain" | "encrypted";

/** One for all sessions: Node examines a group for long. */
let group: DiffieHellman | null = null;

/** A session of either kind, by a client's own cryptography. */
export class TestSession {
  readonly path: string;
  readonly client: BusClient;
  readonly #key: Buffer | null;

  private constructor(client: BusClient, path: string, key: Buffer | null) {
    this.client = client;
    this.path = path;
    this.#key = key;
  }

  static async open(client: BusClient, kind: Kind): Promise<TestSession> {
    const open = (algorithm: string, input: Variant) =>
      client.call(root, "org.freedesktop.Secret.Service.OpenSession", "sv", [algorithm, input]);
    if (kind === "plain") {
      const [, path] = await open("plain", new Variant("s", ""));
      return new TestSession(client, String(path), null);
    }
    group ??= createDiffieHellman(getDiffieHellman("modp2").getPrime(), 2);
    const privateKey = randomBytes(64);
    group.setPrivateKey(privateKey);
    const input = new Variant("ay", group.generateKeys());
    const [theirs, path] = await open("dh-ietf1024-sha256-aes128-cbc-pkcs7", input);
    group.setPrivateKey(privateKey); // another session may have set its own
    const shared = group.computeSecret((theirs as Variant).value as Uint8Array);
    const padded = Buffer.concat([Buffer.alloc(128 - shared.length), shared]);
    const extracted = createHmac("sha256", Buffer.alloc(32)).update(padded).digest();
    const key = createHmac("sha256", extracted).update(Buffer.of(1)).digest().subarray(0, 16);
    return new TestSession(client, String(path), key);
  }

  secret(value: Uint8Array): Value {
    if (this.#key === null) return [this.path, Buffer.of(), value, "text/plain"];
    const parameters = randomBytes(16);
    const cipher = createCipheriv("aes-128-cbc", this.#key, parameters);
    return [this.path, parameters, Buffer.concat([cipher.update(value), cipher.final()]), "text/plain"];
  }

  open(secret: Value): Buffer {
    const [, parameters, value] = secret as readonly [string, Uint8Array, Uint8Array];
    if (this.#key === null) return Buffer.from(value);
    const decipher = createDecipheriv("aes-128-cbc", this.#key, parameters);
    return Buffer.concat([decipher.update(value), decipher.final()]);
  }

  async create(attributes: object, value: Uint8Array, replace = true, collection = loginPath, label = "a label") {
    const given: Value = [
      ["org.freedesktop.Secret.Item.Label", new Variant("s", label)],
      ["org.freedesktop.Secret.Item.Attributes", new Variant("a{ss}", Object.entries(attributes) as Value)],
    ];
    const body = [given, this.secret(value), replace];
    const [path] = await this.client.call(
      collection,
      "org.freedesktop.Secret.Collection.CreateItem",
      "a{sv}(oayays)b",
      body,
    );
    return String(path);
  }

  async search(attributes: object): Promise<readonly [unlocked: readonly string[], locked: readonly string[]]> {
    const body = [Object.entries(attributes) as Value];
    const found = await this.client.call(root, "org.freedesktop.Secret.Service.SearchItems", "a{ss}", body);
    return found as unknown as readonly [readonly string[], readonly string[]];
  }

  async get(path: string): Promise<Buffer> {
    const [secret = ""] = await this.client.call(path, "org.freedesktop.Secret.Item.GetSecret", "o", [this.path]);
    return this.open(secret);
  }
}
