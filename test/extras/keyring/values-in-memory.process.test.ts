/** Values in the memory of the keyring's process and of the server, searched for from outside after clients used them. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { temporaryDirectory } from "../../../tools/rig/clean-up.js";
import { mustInit } from "../../../tools/rig/test-client.js";
import { canary, describeMemory, type Look, startWithCanary } from "../../isolation/search.js";
import { BusClient, spawnKeyring, TestSession } from "./bus-client.js";

/** Values that clients keep, a half in each kind of session. Short in the normal suite; 200 in the long form. */
const count = Number(process.env["STRONGROOM_KEYRING_VALUES"] ?? 8);

describeMemory("the memory of the keyring and its server", {
  "has no value after creations, replacements, reads and changes, over a socket and over TLS": values,
});

async function* values(): AsyncGenerator<Look, void> {
  const server = await startWithCanary();
  await mustInit(server);
  const { url, certificateFile, home } = server;
  const byTls = ["--address", url, "--cacert", certificateFile, "--token-file", join(home, "token")];
  const gone: Record<string, Buffer> = {};
  const processes: [name: string, typeof server][] = [];
  for (const [kind, place, flags] of [
    ["plain", home, []],
    ["encrypted", temporaryDirectory(), byTls],
  ] as const) {
    const { child, socket } = await spawnKeyring(place, flags, { STRONGROOM_SERVER_NAMES: canary });
    const session = await TestSession.open(await BusClient.to(socket), kind);
    for (let n = 0; n < count / 2; n++) await use(session, kind, n, gone);
    await session.search({ kind }); // Node decrypts TLS on its stack, where the last response stays until the next
    processes.push([`keyring of the session that is ${kind}`, { ...server, child }]);
  }
  processes.push(["server", server]);
  for (const [name, process] of processes)
    yield { when: `${name}, while unlocked`, server: process, gone, settles: true };
}

/** Text of a length of its own, bytes that are no text, or a long text. */
function newValue(n: number): Buffer {
  if (n % 4 === 3) return randomBytes(40 + n);
  return Buffer.from(randomBytes(n % 8 === 0 ? 3_000 * (n + 1) : 30 + 3 * n).toString("base64url"));
}

async function use(session: TestSession, kind: string, n: number, gone: Record<string, Buffer>): Promise<void> {
  const { client } = session;
  const about = { kind, n: String(n) };
  const made = [newValue(n), newValue(n), newValue(n)] as const;
  for (const [i, value] of made.entries()) gone[`${kind} ${n}.${i}`] = value.subarray(0, 40);
  const path = await session.create(about, made[0]);
  await session.create(about, made[1]);
  await session.get(path);
  const secret = session.secret(made[2]);
  await client.call(path, "org.freedesktop.Secret.Item.SetSecret", "(oayays)", [secret]);
  await client.call("/org/freedesktop/secrets", "org.freedesktop.Secret.Service.GetSecrets", "aoo", [
    [path],
    session.path,
  ]);
}
