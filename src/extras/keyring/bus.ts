/**
 * A message bus with one service on it (D-Bus specification, "Authentication Protocol" and "Message Bus"): it gives each client a
 * name, answers for `org.freedesktop.DBus`, passes calls for the service on, and signals to the clients that match them.
 */
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { Stream } from "../../cli/kit/dbus/stream.js";
import {
  busName,
  busPath,
  type Message,
  messageTypes,
  noReplyExpected,
  type Value,
  Variant,
} from "../../cli/kit/dbus/wire.js";

/** An error that a client gets by its name. */
export class BusError extends Error {
  readonly errorName: string;

  constructor(name: string, message: string) {
    super(message);
    this.errorName = name.includes(".") ? name : `${busName}.Error.${name}`;
  }
}

/** Result of a call: values of a signature. `wipe`: called once they are written. */
export type Returned = { readonly signature: string; readonly body: readonly Value[]; readonly wipe?: () => void };
export type Signal = Returned & Required<Pick<Message, "path" | "interface" | "member">> & Pick<Message, "destination">;

/** The program on the bus. */
export interface Service {
  readonly name: string;
  /** @throws BusError */
  call(message: Message, sender: string): Promise<Returned>;
  /** The client with this name has gone. */
  gone(sender: string): void;
  /** Sends a signal. The bus sets it. */
  emit: (signal: Signal) => void;
}

const mostConnections = 512;
const mostCalls = 64;
const mostRules = 256;
const mostLineBytes = 1024;
const mostRuleLength = 1024;
const helloMs = 10_000;

/** Members that a message must have. */
type Rule = ReadonlyMap<string, string>;

const ruleKeys =
  /^(?:type|sender|interface|member|path|path_namespace|destination|eavesdrop|arg\d{1,2}(?:path|namespace)?)$/;

/** @throws BusError */
function readRule(text: string): Rule {
  const rule = new Map<string, string>();
  const rest = text.replace(/\s*(\w+)=(?:'([^']*)'|([^',]*))\s*(?:,|$)/gy, (_, key: string, quoted = "", bare = "") => {
    rule.set(key, quoted || bare);
    return "";
  });
  if (rest !== "" || ![...rule.keys()].every((key) => ruleKeys.test(key)))
    throw new BusError("MatchRuleInvalid", "the match rule is not valid");
  return rule;
}

type Sent = Signal & { readonly sender: string };

function matches(rule: Rule, names: ReadonlySet<string>, signal: Sent): boolean {
  const { path, interface: name, member } = signal;
  const tests: Readonly<Record<string, (wanted: string) => boolean>> = {
    type: (wanted) => wanted === "signal",
    sender: (wanted) => names.has(wanted),
    path: (wanted) => wanted === path,
    interface: (wanted) => wanted === name,
    member: (wanted) => wanted === member,
    path_namespace: (wanted) => wanted === "/" || `${path}/`.startsWith(`${wanted}/`),
  };
  return [...rule].every(([key, wanted]) => tests[key]?.(wanted) ?? matchesArgument(key, wanted, signal));
}

function matchesArgument(key: string, wanted: string, { body }: Sent): boolean {
  const [, number, kind] = /^arg(\d+)(path|namespace)?$/.exec(key) ?? [];
  if (number === undefined) return true; // to whom it goes, and whether it overhears
  const value = body[Number(number)];
  if (typeof value !== "string") return false;
  if (kind === "namespace") return `${value}.`.startsWith(`${wanted}.`);
  return value === wanted || (kind === "path" && isPathPrefix(value, wanted));
}

/** Either may be the other's parent, if it ends in a slash. */
function isPathPrefix(one: string, other: string): boolean {
  return (one.endsWith("/") && other.startsWith(one)) || (other.endsWith("/") && one.startsWith(other));
}

/** Serves a bus on the connections that it gets. */
export class Bus {
  readonly service: Service;
  readonly id = randomBytes(16).toString("hex");
  /** In the order of their last calls: the one that has been silent for the longest is the first. */
  readonly #clients = new Set<Client>();
  #names = 1;

  constructor(service: Service) {
    this.service = service;
    service.emit = (signal) => this.emit({ ...signal, sender: serviceName });
  }

  accept(socket: Socket): void {
    if (this.#clients.size >= mostConnections) this.#makeRoom();
    const client = new Client(this, socket);
    this.#clients.add(client);
    socket.once("close", () => {
      this.#clients.delete(client);
      if (client.name === "") return;
      this.service.gone(client.name);
      this.#emitOwner(client.name, client.name, "");
    });
  }

  /** Ends the connection that is missed the least, so that no program that leaves its own open keeps others out. */
  #makeRoom(): void {
    const [first, ...others] = this.#clients;
    if (first === undefined) return;
    const ended = others.reduce((least, client) => (client.worth < least.worth ? client : least), first);
    ended.stream.end();
    this.#clients.delete(ended);
  }

  /** A client has called: it is the one that has been silent for the shortest time. */
  used(client: Client): void {
    if (this.#clients.delete(client)) this.#clients.add(client);
  }

  /** Closes all connections. */
  close(): void {
    for (const { stream } of this.#clients) stream.socket.destroy();
  }

  /** Sends a signal to its destination, or to all clients that it matches. */
  emit(signal: Sent): void {
    const names = new Set([signal.sender, signal.sender === serviceName ? this.service.name : busName]);
    for (const client of this.#clients) {
      const { destination, wipe: _, ...content } = signal;
      const isWanted = destination === undefined ? client.wants(names, signal) : client.name === destination;
      if (isWanted) client.stream.send({ ...content, type: messageTypes.signal, flags: noReplyExpected });
    }
  }

  newName(): string {
    return `:1.${++this.#names}`;
  }

  greet({ name, stream }: Client): void {
    this.#emitOwner(name, "", name);
    const acquired = { path: busPath, interface: busName, member: "NameAcquired", signature: "s", body: [name] };
    stream.send({ ...acquired, type: messageTypes.signal, flags: noReplyExpected, sender: busName, destination: name });
  }

  get names(): readonly string[] {
    const clients = [...this.#clients].map(({ name }) => name).filter((name) => name !== "");
    return [busName, this.service.name, serviceName, ...clients];
  }

  /** @throws BusError */
  findOwner(name: string): string {
    if (!this.names.includes(name)) throw new BusError("NameHasNoOwner", "no program has this name");
    return name === this.service.name ? serviceName : name;
  }

  #emitOwner(name: string, from: string, to: string): void {
    const change = { path: busPath, interface: busName, member: "NameOwnerChanged", sender: busName };
    this.emit({ ...change, signature: "sss", body: [name, from, to] });
  }
}

const serviceName = ":1.1";

/** One connection: the handshake, then messages. */
class Client {
  readonly stream: Stream;
  /** Empty before its greeting. */
  name = "";
  readonly #bus: Bus;
  readonly #rules: [text: string, Rule][] = [];
  #calls = 0;
  #isUsed = false;

  constructor(bus: Bus, socket: Socket) {
    this.#bus = bus;
    this.stream = new Stream(socket, (message, bytes) => {
      void this.#take(message)
        .catch(() => socket.destroy())
        .finally(() => bytes.fill(0));
    });
    const handshake = new Handshake(bus.id, (line) => socket.write(line));
    socket.on("data", (bytes: Buffer) => {
      const rest = handshake.isOver ? bytes : handshake.take(bytes);
      if (rest === null) socket.destroy();
      else this.stream.receive(rest);
    });
    const late = setTimeout(() => this.name === "" && socket.destroy(), helloMs);
    socket.once("close", () => clearTimeout(late));
  }

  /** Lower for a connection that has no name, has called nothing, or has no call running. */
  get worth(): number {
    if (this.name === "") return 0;
    if (!this.#isUsed) return 1;
    return this.#calls === 0 ? 2 : 3;
  }

  wants(names: ReadonlySet<string>, signal: Sent): boolean {
    return this.name !== "" && this.#rules.some(([, rule]) => matches(rule, names, signal));
  }

  /** A client with too many calls is not read. */
  async #take(message: Message): Promise<void> {
    const { socket } = this.stream;
    if (message.type !== messageTypes.call) return;
    if (this.name === "" && message.member !== "Hello") return void socket.destroy();
    this.#isUsed ||= message.member !== "Hello";
    this.#bus.used(this);
    if (++this.#calls >= mostCalls) socket.pause();
    const reply = await replyTo(message, () => this.#call(message));
    if (--this.#calls < mostCalls) socket.resume();
    const sender = message.destination === this.#bus.service.name ? serviceName : (message.destination ?? busName);
    if ((message.flags & noReplyExpected) === 0) this.stream.send({ ...reply, sender, destination: this.name });
    reply.wipe?.();
    if (message.member === "Hello") this.#bus.greet(this);
  }

  /** @throws BusError */
  async #call(message: Message): Promise<Returned> {
    const { destination = busName, member = "" } = message;
    if (destination === this.#bus.service.name || destination === serviceName)
      return this.#bus.service.call(message, this.name);
    if (destination !== busName) throw new BusError("ServiceUnknown", `no program here has the name ${destination}`);
    if (message.interface === "org.freedesktop.DBus.Properties") return this.#properties(message);
    const method = this.#methods[member];
    if (method === undefined) throw new BusError("UnknownMethod", "the bus has no such method");
    if (method[0] !== message.signature)
      throw new BusError("InvalidArgs", `the arguments must be of type ${method[0]}`);
    const [, signature, run] = method;
    const value = run(message.body.map((each) => (typeof each === "string" ? each : "")) as [string, string]);
    return { signature, body: value === null ? [] : [value] };
  }

  #properties({ member }: Message): Returned {
    const none = new Variant("as", []);
    if (member === "Get") return { signature: "v", body: [none] };
    return { signature: "a{sv}", body: [["Features", "Interfaces"].map((name) => [name, none])] };
  }

  /** Signatures of arguments and result, and the method; null: no result. */
  readonly #methods: Readonly<Record<string, Method>> = {
    Hello: ["", "s", () => this.#hello()],
    RequestName: ["su", "u", ([name]) => (this.#bus.names.includes(name) ? 3 : 1)],
    ReleaseName: ["s", "u", () => 1],
    StartServiceByName: ["su", "u", ([name]) => (this.#bus.findOwner(name) === "" ? 1 : 2)],
    UpdateActivationEnvironment: ["a{ss}", "", () => null],
    NameHasOwner: ["s", "b", ([name]) => this.#bus.names.includes(name)],
    ListNames: ["", "as", () => this.#bus.names],
    ListActivatableNames: ["", "as", () => [busName, this.#bus.service.name]],
    ListQueuedOwners: ["s", "as", ([name]) => [this.#bus.findOwner(name)]],
    GetNameOwner: ["s", "s", ([name]) => this.#bus.findOwner(name)],
    GetConnectionUnixUser: ["s", "u", ([name]) => this.#user(name)],
    GetConnectionUnixProcessID: ["s", "u", ([name]) => this.#process(name)],
    GetConnectionCredentials: ["s", "a{sv}", ([name]) => [["UnixUserID", new Variant("u", this.#user(name))]]],
    AddMatch: ["s", "", ([text]) => this.#addRule(text)],
    RemoveMatch: ["s", "", ([text]) => this.#removeRule(text)],
    GetId: ["", "s", () => this.#bus.id],
    GetMachineId: ["", "s", () => this.#bus.id],
    Ping: ["", "", () => null],
    Introspect: ["", "s", () => "<node/>"],
  };

  #hello(): string {
    if (this.name !== "") throw new BusError("Failed", "the connection has a name already");
    this.name = this.#bus.newName();
    return this.name;
  }

  #user(name: string): number {
    this.#bus.findOwner(name);
    return process.getuid?.() ?? 0;
  }

  /** The bus does not know the processes of its clients. */
  #process(name: string): number {
    if (this.#bus.findOwner(name) === serviceName || name === busName) return process.pid;
    throw new BusError("UnixProcessIdUnknown", "the process of this client is not known");
  }

  #addRule(text: string): null {
    if (this.#rules.length >= mostRules || text.length > mostRuleLength)
      throw new BusError("LimitsExceeded", "there are too many match rules, or this one is too long");
    this.#rules.push([text, readRule(text)]);
    return null;
  }

  #removeRule(text: string): null {
    const at = this.#rules.findIndex(([known]) => known === text);
    if (at < 0) throw new BusError("MatchRuleNotFound", "there is no such match rule");
    this.#rules.splice(at, 1);
    return null;
  }
}

type Method = readonly [takes: string, returns: string, run: (texts: [string, string]) => Value | null];

type Reply = Omit<Message, "serial"> & Pick<Returned, "wipe">;

/** Returns the reply to a call: what it returns, or its error. */
export async function replyTo({ serial }: Message, call: () => Promise<Returned>): Promise<Reply> {
  const about = { flags: noReplyExpected, replySerial: serial };
  try {
    return { ...about, type: messageTypes.reply, ...(await call()) };
  } catch (error) {
    const { errorName, message } = error instanceof BusError ? error : new BusError("Failed", "the call failed");
    return { ...about, type: messageTypes.error, errorName, signature: "s", body: [message] };
  }
}

/** The server's side of the handshake. EXTERNAL alone is offered: who may connect, the socket's mode has decided. */
class Handshake {
  readonly #id: string;
  readonly #answer: (line: string) => void;
  #held = "";
  #isAccepted = false;
  isOver = false;

  constructor(id: string, answer: (line: string) => void) {
    this.#id = id;
    this.#answer = answer;
  }

  /** Returns what follows the handshake's end, which is empty before; null for what is no handshake. */
  take(bytes: Buffer): Buffer | null {
    this.#held += bytes.toString("latin1");
    if (!this.#held.startsWith("\0")) return null;
    for (let end = this.#held.indexOf("\r\n"); end >= 0; end = this.#held.indexOf("\r\n")) {
      const line = this.#held.slice(0, end).replace("\0", "");
      this.#held = this.#held.slice(end + 2);
      if (line === "BEGIN") return this.#end();
      this.#answer(`${this.#replyTo(line)}\r\n`);
      this.#held = `\0${this.#held}`;
    }
    return this.#held.length > mostLineBytes ? null : Buffer.alloc(0);
  }

  #end(): Buffer | null {
    this.isOver = true;
    const rest = Buffer.from(this.#held, "latin1");
    this.#held = "";
    return this.#isAccepted ? rest : null;
  }

  #replyTo(line: string): string {
    const [command, mechanism, identity] = line.split(" ");
    if (command === "AUTH" && mechanism === "EXTERNAL" && identity === undefined) return "DATA";
    if ((command === "AUTH" && mechanism === "EXTERNAL") || command === "DATA") {
      this.#isAccepted = true;
      return `OK ${this.#id}`;
    }
    return command === "NEGOTIATE_UNIX_FD" ? "ERROR no descriptors are passed" : "REJECTED EXTERNAL";
  }
}
