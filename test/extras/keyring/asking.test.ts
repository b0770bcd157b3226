/** Questions that the keyring asks the user by SSH_ASKPASS, how it starts, and how its token ends. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { Variant } from "../../../src/cli/kit/dbus/wire.js";
import { later, temporaryDirectory } from "../../../tools/rig/clean-up.js";
import { needs } from "../../../tools/rig/needs.js";
import { environment } from "../../../tools/rig/process.js";
import { passphrase, shareTestServer } from "../../../tools/rig/server.js";
import { runToItsEnd, stringIo } from "../../../tools/rig/string-io.js";
import { mustInit, mustLock, mustSucceed, mustUnlock, send } from "../../../tools/rig/test-client.js";
import { runHere } from "../../support/command-here.js";
import { hasPython, runOnTerminal } from "../../support/pseudo-terminal.js";
import { BusClient, loginPath, root, startKeyringIn, TestSession } from "./bus-client.js";

const item = "org.freedesktop.Secret.Item";

describe("the keyring that asks", () => {
  const server = shareTestServer({ socket: null }, mustInit);

  type Token = { readonly name: string; readonly createdAt: string; readonly expiresAt: string };
  const tokens = async () => mustSucceed(await send(server(), { path: "/v1/tokens" }))["tokens"] as readonly Token[];

  /** Starts a keyring whose SSH_ASKPASS runs a script, and a session of a client. */
  async function startAsking(script: string, ...flags: readonly string[]) {
    const directory = temporaryDirectory();
    const [program, log] = [join(directory, "askpass"), join(directory, "asked")] as const;
    writeFileSync(log, "");
    writeFileSync(program, `#!/bin/sh\necho "$1" >> ${log}\n${script}\n`, { mode: 0o700 });
    const asking = { SSH_ASKPASS: program, SSH_ASKPASS_REQUIRE: "force" };
    const { socket, stop } = await startKeyringIn(server(), asking, ...flags);
    const session = await TestSession.open(await BusClient.to(socket), "encrypted");
    const asked = () => readFileSync(log, "utf8").split("\n").slice(0, -1);
    return { session, asked, program, stop };
  }

  /** Lets the client unlock; returns what the prompt completes with. */
  async function prompt({ client }: TestSession): Promise<readonly unknown[]> {
    const [, path] = await client.call(root, "org.freedesktop.Secret.Service.Unlock", "ao", [[loginPath]]);
    await client.call(String(path), "org.freedesktop.Secret.Prompt.Prompt", "s", [""]);
    for (;;) {
      const completed = client.signals.find((signal) => signal.member === "Completed" && signal.path === path);
      if (completed !== undefined) return completed.body;
      await sleep(10);
    }
  }

  it("--confirm asks before each value, and with --confirm-for once for an item", async () => {
    const { session, asked, program } = await startAsking('test -e "$0.yes"', "--confirm", "--confirm-for", "10m");
    const paths = [
      await session.create({ n: "1" }, Buffer.from("one")),
      await session.create({ n: "2" }, Buffer.from("two")),
    ];
    const [first = "", second = ""] = paths;
    const refused = await session.get(first).catch(String);
    expect(refused).to.match(/org\.freedesktop\.DBus\.Error\.AccessDenied$/);
    writeFileSync(`${program}.yes`, "");
    for (const path of [first, first, second]) expect((await session.get(path)).length).to.equal(3);
    expect(asked()).to.deep.equal(Array(3).fill("Allow a program to read a label from the keyring?"));
  });

  it("a typed passphrase unlocks the vault and completes the prompt, and a wrong one is asked for again", async () => {
    const script = `test -e "$0.wrong" && echo '${passphrase}' || { touch "$0.wrong"; echo 'wrong passphrase'; }`;
    const { session, asked } = await startAsking(script);
    const path = await session.create({ n: "1" }, Buffer.from("one"));
    await mustLock(server());
    expect(await prompt(session)).to.deep.equal([false, new Variant("ao", [loginPath])]);
    expect(asked()).to.deep.equal(Array(2).fill("Passphrase of the vault, for a program that uses the keyring: "));
    expect((await session.get(path)).toString()).to.equal("one");
  });

  it("the keyring asks on its terminal without SSH_ASKPASS, and shows no passphrase", async function () {
    needs(this, hasPython(), "Python");
    const directory = temporaryDirectory();
    const [socket, running] = [join(directory, "bus"), join(directory, "running")] as const;
    writeFileSync(running, "");
    const waits = `for n in $(seq 3000); do [ -e ${running} ] || exit 5; sleep 0.02; done`;
    const steps = [
      { question: "Passphrase of the vault, for a program that uses the keyring: ", keys: "wrong\r" },
      { question: "wrong passphrase, 2 tries left", keys: `${passphrase}\r` },
    ];
    const args = ["keyring", "--socket", socket, "--", "sh", "-c", waits];
    const ended = runOnTerminal(args, steps, { STRONGROOM_HOME: server().home });
    let client: BusClient | null = null;
    while (client === null) client = await BusClient.to(socket).catch(() => sleep(20, null));
    const session = await TestSession.open(client, "plain");
    const path = await session.create({ on: "a terminal" }, Buffer.from("one"));
    await mustLock(server());
    expect(await prompt(session)).to.deep.equal([false, new Variant("ao", [loginPath])]);
    expect((await session.get(path)).toString()).to.equal("one");
    rmSync(running);
    const { code, shown } = await ended;
    expect(code, shown).to.equal(5);
    expect(shown).not.to.contain(passphrase);
  });

  it("a declined question dismisses the prompt and leaves the vault locked", async () => {
    const { session, asked } = await startAsking("exit 1");
    await mustLock(server());
    expect(await prompt(session)).to.deep.equal([true, new Variant("ao", [])]);
    expect(asked()).to.have.length(1);
    expect(await session.client.property(loginPath, "Collection", "Locked")).to.equal(true);
    await mustUnlock(server());
  });

  it("--confirm in the background is refused where nothing can ask", async () => {
    const { code, stderr } = await runHere(["keyring", "--confirm"], { STRONGROOM_HOME: server().home });
    expect(code, stderr).to.equal(2);
    expect(stderr).to.contain("--confirm has nothing to ask with");
  });

  it("the keyring serves clients from a server over TLS only", async () => {
    const { url, certificateFile, home } = server();
    const connection = ["--address", url, "--cacert", certificateFile, "--token-file", join(home, "token")];
    const { socket } = await startKeyringIn(server(), { STRONGROOM_HOME: temporaryDirectory() }, ...connection);
    const session = await TestSession.open(await BusClient.to(socket), "plain");
    const path = await session.create({ over: "TLS" }, Buffer.from([255, 0, 1]));
    await session.client.call(path, `${item}.SetSecret`, "(oayays)", [session.secret(Buffer.from("text"))]);
    expect((await session.get(path)).toString()).to.equal("text");
    expect(await session.search({ over: "TLS" })).to.deep.equal([[path], []]);
  });

  it("the keyring's token lasts an hour, is replaced when it ends, and is revoked at exit", async () => {
    const before = new Set((await tokens()).map(({ name }) => name));
    const own = async () => (await tokens()).filter(({ name }) => !before.has(name));
    const { session, stop } = await startAsking("exit 1");
    const path = await session.create({ n: "1" }, Buffer.from("one"));
    const [first] = await own();
    expect(Date.parse(first?.expiresAt ?? "") - Date.parse(first?.createdAt ?? "")).to.equal(3_600_000);
    mustSucceed(await send(server(), { method: "DELETE", path: `/v1/tokens/${first?.name}` }));
    expect((await session.get(path)).toString()).to.equal("one");
    expect(await own()).to.have.length(1);
    await stop();
    expect(await own()).to.deep.equal([]);
  });

  it("the keyring goes to the background, prints shell variables, and removes its socket at a signal", async () => {
    const runtime = temporaryDirectory();
    const io = stringIo({ env: environment({ STRONGROOM_HOME: server().home, XDG_RUNTIME_DIR: runtime }) });
    await runToItsEnd(["keyring", "--ttl", "2h"], io);
    const { stdout, stderr } = io.printed();
    const [, path = "", pid] =
      /^DBUS_SESSION_BUS_ADDRESS='unix:path=([^']+)'; export DBUS_SESSION_BUS_ADDRESS;\nSTRONGROOM_KEYRING_PID=(\d+); export STRONGROOM_KEYRING_PID;\n$/.exec(
        stdout,
      ) ?? [];
    expect(Number(pid), stdout + stderr).to.be.above(1);
    later(() => void endProcess(Number(pid)));
    const session = await TestSession.open(await BusClient.to(path), "encrypted");
    const made = await session.create({ in: "background" }, Buffer.from("v"));
    expect((await session.get(made)).toString()).to.equal("v");
    const closed = new Promise((resolve) => session.client.socket.once("close", resolve));
    process.kill(Number(pid), "SIGTERM");
    await closed;
    while ((await BusClient.to(path).catch(() => null)) !== null) await sleep(20);
    const [token] = (await tokens()).slice(-1);
    expect(Date.parse(token?.expiresAt ?? "") - Date.parse(token?.createdAt ?? "")).to.equal(7_200_000);
  });
});

function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // it has ended
  }
}
