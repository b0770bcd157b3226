/** `strongroom approve --notify`: the message that the desktop gets, as programs of the session bus read it. */
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { runCommandLine } from "../../src/cli/command-line.js";
import { findSessionBus, notify } from "../../src/cli/kit/programs/notification.js";
import { sendThrough, startAgent, startBound, startUpstream } from "../../tools/rig/broker-rig.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { environment } from "../../tools/rig/process.js";
import { realScryptCost } from "../../tools/rig/server.js";
import { stringIo } from "../../tools/rig/string-io.js";
import { type Json, mustSucceed, send } from "../../tools/rig/test-client.js";
import { hasProgram, startSessionBus } from "../support/session-bus.js";

/** A bus that accepts the user, and sends these messages as it gets the first call, and those as it gets the second. */
async function startBus(first: readonly Uint8Array[], second: readonly Uint8Array[] = []): Promise<string> {
  const path = join(temporaryDirectory(), "bus");
  const server = createServer((socket) => {
    socket
      .on("error", () => {})
      .on("data", (piece: Buffer) => {
        if (piece.includes("AUTH EXTERNAL")) socket.write("OK 0123456789abcdef\r\n");
        if (piece.includes("Hello")) socket.write(Buffer.concat(first));
        if (piece.includes("susssasa{sv}i")) socket.write(Buffer.concat(second));
      });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  later(() => void server.close());
  return path;
}

type Order = "l" | "B";

function uint32(order: Order, value: number): Buffer {
  const bytes = Buffer.alloc(4);
  if (order === "l") bytes.writeUInt32LE(value);
  else bytes.writeUInt32BE(value);
  return bytes;
}

/** A field of a message's header, of 8 bytes or padded to them. */
function field(order: Order, code: number, type: string, value: number | string): Buffer {
  const head = Buffer.concat([Buffer.of(code, 1), Buffer.from(`${type}\0`)]);
  if (typeof value === "number") return Buffer.concat([head, uint32(order, value)]);
  const bytes = Buffer.concat([head, uint32(order, value.length), Buffer.from(`${value}\0`)]);
  return Buffer.concat([bytes, Buffer.alloc((8 - (bytes.length % 8)) % 8)]);
}

/** A message without a body. The last field is not padded: it has 8 bytes. */
function message(order: Order, type: number, ...fields: readonly Buffer[]): Buffer {
  const content = Buffer.concat(fields);
  const head = Buffer.concat([Buffer.from(order), Buffer.of(type, 1, 1), uint32(order, 0), uint32(order, 9)]);
  return Buffer.concat([head, uint32(order, content.length), content]);
}

const returned = (order: Order, call: number) => message(order, 2, field(order, 5, "u", call));
const refused = (order: Order, call: number) =>
  message(order, 3, field(order, 4, "s", "x.Unknown"), field(order, 5, "u", call));
const signal = (order: Order) =>
  message(
    order,
    4,
    ...[field(order, 1, "o", "/x"), field(order, 2, "s", "x.Y"), field(order, 3, "s", "M"), field(order, 5, "u", 2)],
  );

describe("notifications", () => {
  it("notify waits for the desktop's reply, whatever else the bus sends before it", async () => {
    for (const order of ["l", "B"] as const) {
      const bus = await startBus([signal(order), returned(order, 1)], [signal(order), returned(order, 2)]);
      await notify(bus, stringIo(), "summary", "body");
    }
  });

  it("notify fails with the reason when the notification is not shown", async () => {
    const missing = join(temporaryDirectory(), "none");
    const refusing = await startBus([returned("l", 1)], [signal("l"), refused("l", 2)]);
    const huge = returned("l", 1);
    huge.writeUInt32LE(0x7fffffff, 4);
    for (const [bus, says] of [
      [refusing, "no program shows notifications"],
      [await startBus([huge]), "the connection to the session bus has ended"],
      [missing, "ENOENT"],
    ] as const) {
      const shown = await notify(bus, stringIo(), "summary", "body").then(() => "shown", String);
      expect(shown).to.contain(says);
    }
  });

  it("the environment selects the session bus", () => {
    const rows: readonly (readonly [environment: NodeJS.ProcessEnv, path: string])[] = [
      [{ DBUS_SESSION_BUS_ADDRESS: "unix:path=/run/user/1/bus%20x,guid=0f" }, "/run/user/1/bus x"],
      [{ DBUS_SESSION_BUS_ADDRESS: "tcp:host=a;unix:guid=0f,abstract=/tmp/x" }, "\0/tmp/x"],
      [{ XDG_RUNTIME_DIR: "/run/user/2" }, "/run/user/2/bus"],
    ];
    for (const [env, path] of rows) expect(findSessionBus({ env })).to.equal(path);
    for (const env of [{}, { DBUS_SESSION_BUS_ADDRESS: "tcp:host=a", XDG_RUNTIME_DIR: "/run" }])
      expect(() => findSessionBus({ env })).to.throw("--notify needs the session bus of a desktop");
  });

  it("dbus-monitor shows the escaped facts of the request", async function () {
    this.timeout(120_000);
    needs(this, hasProgram("dbus-daemon") && hasProgram("dbus-monitor"), "dbus-daemon and dbus-monitor");
    const { address, run } = await startSessionBus();
    const monitor = run("dbus-monitor", "--session", "member='Notify'");
    while (!monitor.stdout().includes("NameLost")) await sleep(20);
    const { server, at } = await startBound(await startUpstream(), { ask: "request" }, realScryptCost);
    const asked = sendThrough(await startAgent(server), at, `GET /a&b HTTP/1.1\r\nHost: ${at}\r\n\r\n`);
    let waiting: readonly Json[] = [];
    while (waiting.length === 0)
      waiting = mustSucceed(await send(server, { path: "/v1/approvals" }))["approvals"] as readonly Json[];
    const place = { STRONGROOM_HOME: server.home, STRONGROOM_ADDRESS: server.url };
    const io = stringIo({ env: environment({ ...place, DBUS_SESSION_BUS_ADDRESS: address }) });
    await runCommandLine(["approve", "--once", "--notify"], io);
    expect(io.printed().stderr).to.equal("no notification: no program shows notifications on this desktop\n");
    while (!monitor.stdout().includes("int32 60000")) await sleep(20);
    expect(monitor.stdout()).to.match(
      /member=Notify\n +string "Strongroom"\n +uint32 0\n +string ""\n +string "A request waits for approval"\n +string " *host +localhost\n +port +\d+\n +scheme +https\n +method +GET\n +path +\/a&amp;b\n[^"]+"\n +array \[\n +\]\n +array \[\n +\]\n +int32 60000\n/,
    );
    await send(server, { method: "POST", path: `/v1/approvals/${waiting[0]?.["id"]}`, body: { approve: false } });
    await asked;
  });
});
