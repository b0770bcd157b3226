/** Attacks of the demonstration by another local user, a web page and a secret's name: tried on a real server and command. */
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { later, temporaryDirectory } from "../rig/clean-up.js";
import { NotStarted, run, type ServerProcess, startProcess } from "../rig/process.js";
import { type ApiResponse, mustLock, mustPut, mustStatus, send } from "../rig/test-client.js";
import type { Attack } from "./printout.js";

/** The kernel's unprivileged user. */
const otherUser = 65534;

/** Another user listens in a home that they made, and waits for a token and a passphrase. */
export async function foreignHome(server: ServerProcess): Promise<Attack> {
  const trap = await setTrap(server.token);
  const passphraseFile = join(temporaryDirectory(), "passphrase");
  writeFileSync(passphraseFile, "the master passphrase", { mode: 0o600 });
  const unlock = () => run(["unlock", "--passphrase-file", passphraseFile], { STRONGROOM_HOME: trap.home });
  await unlock();
  const works = trap.received() > 0;
  trap.giveAway();
  const before = trap.received();
  const { code } = await unlock();
  const caught = trap.received() - before;
  return {
    attack: "a trap in a home that others can change",
    outcome: `exit ${code}, ${caught} bytes received`,
    holds: works && code === 11 && caught === 0,
  };
}

/** A home with a socket that counts what it receives. `giveAway` makes the home another user's, or open to all. */
async function setTrap(token: string) {
  const home = temporaryDirectory();
  const socket = join(home, "strongroom.sock");
  writeFileSync(join(home, "token"), token, { mode: 0o600 });
  let bytes = 0;
  const trap = createServer((caller) => {
    caller.on("error", () => {});
    caller.on("data", (chunk) => {
      bytes += chunk.length;
      caller.destroy();
    });
  });
  later(() => void trap.close());
  await once(trap.listen(socket), "listening");
  chmodSync(socket, 0o600);
  const giveAway = () => {
    if (process.getuid?.() !== 0) return chmodSync(home, 0o777);
    for (const path of [home, socket, join(home, "token")]) chownSync(path, otherUser, otherUser);
  };
  return { home, giveAway, received: () => bytes };
}

/** Any local user may bind any address of 127.0.0.0/8. */
export async function manyAddresses(server: ServerProcess): Promise<Attack> {
  await mustLock(server);
  const answers: ApiResponse[] = [];
  for (let n = 1; n <= 12; n++) {
    const body = { passphrase: `guess ${n}` };
    answers.push(await send(server, { method: "POST", path: "/v1/unlock", body, localAddress: `127.0.0.${n}` }));
  }
  const tried = answers.filter(({ status }) => status === 401).length;
  const refused = answers.filter(({ status }) => status === 429).length;
  return {
    attack: "12 guesses, each from its own address",
    outcome: `${tried} tried, ${refused} refused with 429`,
    holds: tried === 10 && refused === 2,
  };
}

/** The token's lockout is for each address, so that no one may be able to guess the token at all. */
export async function shortToken(): Promise<Attack> {
  const failure = await startProcess([], { STRONGROOM_TOKEN: "t".repeat(31) }).catch((error: unknown) => error);
  const holds = failure instanceof NotStarted && failure.ended.stderr.includes("32");
  return {
    attack: "a token short enough to guess",
    outcome: failure instanceof NotStarted ? `exit ${failure.ended.code}, no start` : "accepted",
    holds,
  };
}

/** Requests that a page of another site can send: no `Origin`, and no token. */
export async function webPage(server: ServerProcess): Promise<Attack> {
  const headers = { "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors" };
  const answers: ApiResponse[] = [];
  for (let n = 0; n < 15; n++) answers.push(await send(server, { path: "/v1/secrets", token: null, headers }));
  const refused = answers.filter(({ status }) => status === 400).length;
  const { status } = await send(server, { path: "/v1/secrets" });
  return {
    attack: "15 requests of a web page, for a lockout",
    outcome: `${refused} times 400, the owner ${status}`,
    holds: refused === answers.length && status === 200,
  };
}

/** Keeps the owner from locking, without a token: a lockout of loopback, then all connections. */
export async function ownersLock(server: ServerProcess): Promise<Attack> {
  for (let n = 0; n < 10; n++) await send(server, { path: "/v1/secrets", token: "wrong" });
  const { status } = await send(server, { method: "POST", path: "/v1/lock" });
  const idle = Array.from({ length: 1100 }, () => connect(server.port, "127.0.0.1").on("error", () => {}));
  await Promise.all(idle.map((one) => Promise.race([once(one, "connect"), once(one, "close")])));
  const { code } = await run(["lock"], { STRONGROOM_HOME: server.home });
  for (const one of idle) one.destroy();
  const { locked } = await mustStatus(server);
  return {
    attack: "1,100 idle connections, against lock",
    outcome: `TCP ${status}, Unix socket exit ${code}`,
    holds: status === 429 && code === 0 && locked === true,
  };
}

/** A field of an import becomes a variable that makes Node load a file. */
export async function steeringName(server: ServerProcess): Promise<Attack> {
  const place = temporaryDirectory();
  const [mark, module] = [join(place, "mark"), join(place, "foreign.cjs")];
  writeFileSync(module, `require("node:fs").appendFileSync(${JSON.stringify(mark)}, "ran");\n`);
  await mustPut(server, "ci/NODE OPTIONS", `--require ${module}`);
  const home = { STRONGROOM_HOME: server.home };
  const program = ["--", process.execPath, "-e", "0"];
  const { code } = await run(["run", "--prefix", "ci/", ...program], home);
  const ran = existsSync(mark);
  await run(["run", "--set", "NODE_OPTIONS=ci/NODE OPTIONS", ...program], home);
  const works = existsSync(mark);
  return {
    attack: "a secret named NODE OPTIONS, for run",
    outcome: ran ? "foreign code ran" : `exit ${code}, foreign code not run`,
    holds: works && !ran && code === 2,
  };
}
