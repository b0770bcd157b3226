/** The service on the user's own session bus, in place of a bus of ours. */
import { SessionBus, sessionBusPaths } from "../../cli/kit/dbus/session-bus.js";
import { busName, busPath, type Message, messageTypes, noReplyExpected, type Value } from "../../cli/kit/dbus/wire.js";
import { CommandFailure, systemCode } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { printable } from "../../cli/kit/output.js";
import { replyTo, type Service } from "./bus.js";

/** Flags of RequestName. */
const [allowsReplacement, replaces, doesNotQueue] = [1, 2, 4];
const isOwner = 1;

/** Takes the name of the service. The connection ends when the bus or another program takes it back. @throws CommandFailure */
export async function joinSessionBus(io: Io, service: Service, replace: boolean): Promise<SessionBus> {
  const bus = await connectFirst(io);
  bus.take = (message) => serve(bus, service, message);
  service.emit = (signal) => void bus.send({ ...signal, type: messageTypes.signal, flags: noReplyExpected });
  await bus.greet(io.uid ?? 0);
  await call(bus, "AddMatch", "s", [`type='signal',sender='${busName}',member='NameOwnerChanged',arg2=''`]);
  const flags = allowsReplacement | doesNotQueue | (replace ? replaces : 0);
  if ((await call(bus, "RequestName", "su", [service.name, flags])) === isOwner) return bus;
  const owner = await call(bus, "GetNameOwner", "s", [service.name]);
  const pid = await call(bus, "GetConnectionUnixProcessID", "s", [owner]);
  bus.close();
  const remedy = replace ? "it does not permit a replacement: end it first" : "end it, or use --replace";
  throw new CommandFailure("conflict", `another program serves ${service.name} (pid ${pid}): ${remedy}`);
}

/** Connects to the first address of the session bus that works. @throws CommandFailure */
async function connectFirst(io: Io): Promise<SessionBus> {
  let problem = "DBUS_SESSION_BUS_ADDRESS names no socket of one";
  for (const path of sessionBusPaths(io)) {
    try {
      return await SessionBus.connect(path);
    } catch (error) {
      problem = `${printable(path.replace("\0", "@"))} cannot be used (${systemCode(error) ?? "unknown reason"})`;
    }
  }
  throw new CommandFailure(
    "unreachable",
    `there is no session bus: ${problem}; without one, use  strongroom keyring -- COMMAND`,
  );
}

/** Calls a method of the bus; returns its first value. @throws CommandFailure */
async function call(bus: SessionBus, member: string, signature: string, body: readonly Value[]): Promise<Value> {
  const { type, body: values } = await bus.call(busName, busPath, member, signature, body);
  if (type === messageTypes.reply) return values[0] ?? "";
  const reason = printable(String(values[0] ?? ""));
  throw new CommandFailure("unexpected", `the session bus refused ${member}: ${reason}`);
}

async function serve(bus: SessionBus, service: Service, message: Message): Promise<void> {
  const { type, flags, member, body, sender = "" } = message;
  if (type === messageTypes.call) {
    const reply = await replyTo(message, () => service.call(message, sender));
    if ((flags & noReplyExpected) === 0) bus.send({ ...reply, destination: sender });
    reply.wipe?.();
  } else if (sender === busName && member === "NameLost" && body[0] === service.name) bus.close();
  else if (sender === busName && member === "NameOwnerChanged") service.gone(String(body[0]));
}
