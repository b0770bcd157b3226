/**
 * Notifications on the user's desktop, sent on the session bus (D-Bus): other users could read the arguments of a program such as
 * notify-send.
 */
import { SessionBus, sessionBusPaths } from "../dbus/session-bus.js";
import { messageTypes } from "../dbus/wire.js";
import { CommandFailure } from "../errors.js";
import type { Io } from "../io.js";

/** How long a notification is shown, in milliseconds. */
const shownMs = 60_000;

/** How long the desktop may take to answer, in milliseconds. */
const patienceMs = 10_000;

/** Returns the path of the session bus's socket, in the form of `connect`. @throws CommandFailure usage, where there is none */
export function findSessionBus(io: Pick<Io, "env">): string {
  const [path] = sessionBusPaths(io);
  if (path !== undefined) return path;
  throw new CommandFailure("usage", "--notify needs the session bus of a desktop: DBUS_SESSION_BUS_ADDRESS names none");
}

/** Shows a notification. @throws Error that says why the desktop shows none */
export async function notify(path: string, { clock, uid }: Io, summary: string, body: string): Promise<void> {
  const bus = await SessionBus.connect(path);
  let cancel = () => {};
  const late = new Promise<never>((_, reject) => {
    cancel = clock.after(patienceMs, () => reject(new Error("the session bus does not answer")));
  });
  try {
    await Promise.race([show(bus, uid ?? 0, summary, body), late]);
  } finally {
    cancel();
    bus.close();
  }
}

const name = "org.freedesktop.Notifications";

/** The body is markup. Numbers: the notification that it replaces, and how long it is shown; lists: buttons and hints. */
async function show(bus: SessionBus, uid: number, summary: string, body: string): Promise<void> {
  await bus.greet(uid);
  const markup = body.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const values = ["Strongroom", 0, "", summary, markup, [], [], shownMs];
  const { type } = await bus.call(name, "/org/freedesktop/Notifications", "Notify", "susssasa{sv}i", values);
  if (type === messageTypes.error) throw new Error("no program shows notifications on this desktop");
}
