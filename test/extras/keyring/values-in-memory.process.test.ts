/** Values in the memory of the keyring's process and of the server, searched for from outside after clients used them. */
import { randomBytes } from "node:crypto";
import { mustInit } from "../../../tools/rig/test-client.js";
import { canary, describeMemory, type Look, startWithCanary } from "../../isolation/search.js";
import { BusClient, spawnKeyring, TestSession } from "./bus-client.js";

/** Values that clients keep, a half in each kind of session. Short in the normal suite; 200 in the long form. */
const count = Number(process.env["STRONGROOM_KEYRING_VALUES"] ?? 8);

describeMemory("the memory of the keyring and its server", {
  "has no value after creations, replacements, reads and changes in both kinds of session": values,
});

async function* values(): AsyncGenerator<Look, void> {
  const server = await startWithCanary();
  await mustInit(server);
  const { child, socket } = await spawnKeyring(server.home, [], { STRONGROOM_SERVER_NAMES: canary });
  const gone: Record<string, Buffer> = {};
  for (const kind of ["plain", "encrypted"] as const) {
    const session = await TestSession.open(await BusClient.to(socket), kind);
    for (let n = 0; n < count / 2; n++) await use(session, kind, n, gone);
  }
  const keyring = { ...server, child };
  for (const process of [keyring, server]) yield { when: "while unlocked", server: process, gone, settles: true };
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
