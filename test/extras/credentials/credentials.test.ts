/** Secrets on Unix sockets: what a program reads there while the vault is unlocked, locked, and when a secret goes. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { runCommandLine } from "../../../src/cli/command-line.js";
import { later, temporaryDirectory } from "../../../tools/rig/clean-up.js";
import { isRoot, needs } from "../../../tools/rig/needs.js";
import { environment, mainArguments, node } from "../../../tools/rig/process.js";
import { shareTestServer } from "../../../tools/rig/server.js";
import { type StringIo, type StringIoOptions, stringIo } from "../../../tools/rig/string-io.js";
import {
  mustCreateToken,
  mustInit,
  mustLock,
  mustPut,
  mustSucceed,
  mustUnlock,
  send,
} from "../../../tools/rig/test-client.js";
import { serverEnvironment, strongroom } from "../../cli/command-rows.js";
import { hasPython } from "../../support/pseudo-terminal.js";
import { loadCredential } from "../systemd-client.js";

/** Input that a program reads: all bytes until the end, or the code of an error. */
type Read = { readonly text: string; readonly error: string | null };

async function read(path: string): Promise<Read> {
  const chunks: Buffer[] = [];
  const socket = connect(path).on("data", (chunk) => chunks.push(chunk));
  const error = await once(socket, "end").then(
    () => null,
    (problem: NodeJS.ErrnoException) => problem.code ?? "",
  );
  socket.destroy();
  return { text: Buffer.concat(chunks).toString("latin1"), error };
}

/** The command asks for the vault's state each second, and rounds are 200 ms apart. */
const roundsToStatus = 6;

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(20);
}

describe("strongroom credentials", function () {
  this.timeout(120_000);
  const server = shareTestServer({ audit: "all" }, mustInit);
  const here = () => serverEnvironment(server());
  beforeEach(async () => {
    await mustPut(server(), "app/password", "s3cret");
    await mustPut(server(), "mail/smtp", "line\n\u00fc");
  });
  afterEach(() => mustUnlock(server()));

  type Running = { readonly io: StringIo; readonly directory: string; readonly end: () => Promise<StringIo> };

  /** Starts the command in this process; returns when its sockets are there, or it has ended. */
  async function start(
    args: readonly string[],
    directory = join(temporaryDirectory(), "c"),
    more = {},
    options: StringIoOptions = {},
  ): Promise<Running> {
    const io = stringIo({ env: environment({ ...here(), ...more }), kill: () => {}, ...options });
    let isEnded = false;
    const running = runCommandLine(["credentials", "--dir", directory, ...args], io).finally(() => {
      isEnded = true;
    });
    const end = async () => {
      io.events.emit("SIGTERM", "SIGTERM");
      await running;
      return io;
    };
    later(async () => void (await end()));
    await until(() => isEnded || io.events.listenerCount("SIGTERM") > 1); // it serves then
    return { io, directory, end };
  }

  const tokens = async () => {
    const { tokens: all } = mustSucceed(await send(server(), { path: "/v1/tokens" }));
    const found = all as {
      readonly name: string;
      readonly can: readonly string[];
      readonly paths: readonly string[];
      readonly expiresAt: string;
    }[];
    return found.filter(({ name }) => name.startsWith("credentials-"));
  };
  const reads = async () => {
    const { records } = mustSucceed(await send(server(), { path: "/v1/audit?limit=1000" }));
    return (records as { readonly event: string; readonly token?: string }[]).filter(
      ({ event, token = "" }) => event === "get" && token.startsWith("credentials-"),
    ).length;
  };

  it("each socket sends the value's bytes and the end, for the owner only", async () => {
    const large = Buffer.alloc(700_000, "0123456789");
    mustSucceed(
      await send(server(), {
        method: "PUT",
        path: "/v1/secrets/app/large",
        body: { value: large.toString("base64"), encoding: "base64" },
      }),
    );
    const { directory, end } = await start(["app/password", "mail=mail/smtp", "app/large"]);
    expect(readdirSync(directory).sort()).to.deep.equal(["large", "mail", "password"]);
    const modes = [directory, join(directory, "mail")].map((path) => (statSync(path).mode & 0o777).toString(8));
    expect(modes).to.deep.equal(["700", "600"]);
    const got = await Promise.all(["password", "mail", "mail", "large"].map((name) => read(join(directory, name))));
    expect(got.map(({ text, error }) => [text.length > 99 ? text === large.toString() : text, error])).to.deep.equal([
      ["s3cret", null],
      [Buffer.from("line\n\u00fc").toString("latin1"), null],
      [Buffer.from("line\n\u00fc").toString("latin1"), null],
      [true, null],
    ]);
    await mustPut(server(), "app/password", "changed");
    expect(await read(join(directory, "password"))).to.deep.equal({ text: "changed", error: null });
    expect((await end()).exitCode).to.equal(0);
    expect(readdirSync(directory)).to.deep.equal([]);
  });

  it("credentials makes a token for its paths that ends within the hour, and revokes it", async () => {
    const { directory, end } = await start(["app/password"]);
    const [token, ...others] = await tokens();
    expect(others).to.deep.equal([]);
    expect([token?.can, token?.paths]).to.deep.equal([["get"], ["app/password"]]);
    expect(Date.parse(token?.expiresAt ?? "") - Date.now()).to.be.within(0, 3_600_000);
    const before = await reads();
    expect((await read(join(directory, "password"))).text).to.equal("s3cret");
    expect(await reads()).to.be.above(before);
    await end();
    expect(await tokens()).to.deep.equal([]);
  });

  it("credentials uses a given token, and leaves it valid", async () => {
    const { token } = await mustCreateToken(server(), { name: "reader", can: ["get"], paths: ["app/"] });
    const { directory, end } = await start(["app/password"], undefined, { STRONGROOM_TOKEN: token });
    expect((await read(join(directory, "password"))).text).to.equal("s3cret");
    expect(await tokens()).to.deep.equal([]);
    await end();
    mustSucceed(await send(server(), { path: "/v1/tokens/self", token }));
    const outside = await start(["mail/smtp"], undefined, { STRONGROOM_TOKEN: token });
    expect(outside.io.exitCode).to.equal(14);
  });

  it("connections wait while the vault is locked, also one from systemd", async function () {
    needs(this, hasPython(), "Python");
    const { directory } = await start(["app/password"]);
    await mustLock(server());
    const path = join(directory, "password");
    const waiting = read(path);
    const unit = loadCredential(path);
    const first = await Promise.race([waiting, unit, sleep(2500, "waits")]);
    expect(first).to.equal("waits");
    await mustUnlock(server());
    expect(await waiting).to.deep.equal({ text: "s3cret", error: null });
    expect(await unit).to.include({ code: 0, stdout: "s3cret", stderr: "" });
  });

  it("programs that do not read or do not close their connection block no other program", async () => {
    const value = "0123456789".repeat(70_000);
    await mustPut(server(), "app/large", value);
    const { directory } = await start(["app/large", "mail/smtp"]);
    const open = (name: string) => {
      const socket = connect({ path: join(directory, name), allowHalfOpen: true }).on("error", () => {});
      later(() => void socket.destroy());
      return socket;
    };
    open("large");
    await once(open("smtp").resume(), "end");
    for (const name of ["smtp", "large"]) expect((await read(join(directory, name))).error).to.equal(null);
    expect((await read(join(directory, "large"))).text).to.equal(value);
  });

  it("credentials starts with a locked vault, and exits with 4 after the unlock without the secret", async () => {
    await mustLock(server());
    const { directory, io } = await start(["app/password"]);
    expect(io.printed().stderr).to.equal("the vault is locked: connections wait until it is unlocked\n");
    const waiting = read(join(directory, "password"));
    const missing = await start(["app/missing"]);
    await mustUnlock(server());
    expect(await waiting).to.deep.equal({ text: "s3cret", error: null });
    await until(() => missing.io.exitCode !== 0);
    expect(missing.io.exitCode).to.equal(4);
  });

  it("waiting connections are reset at exit after an unlocked time, and no socket remains", async () => {
    let rounds = 0;
    const wait = (ms: number, signal?: AbortSignal) => sleep(ms, undefined, { signal }).then(() => void rounds++);
    const { directory, end } = await start(["app/password", "mail/smtp"], undefined, {}, { sleep: wait });
    expect((await read(join(directory, "password"))).text).to.equal("s3cret");
    await mustLock(server());
    rounds = 0;
    await until(() => rounds > roundsToStatus); // a connection that is accepted while the vault is unlocked ends without a reset
    const waiting = [read(join(directory, "password")), read(join(directory, "smtp"))];
    await sleep(100);
    await end();
    expect(await Promise.all(waiting)).to.deep.equal(Array(2).fill({ text: "", error: "ECONNRESET" }));
    expect(readdirSync(directory)).to.deep.equal([]);
  });

  it("a deleted secret loses its socket, and no connection ends without data", async () => {
    const { directory } = await start(["app/password", "mail/smtp"]);
    const path = join(directory, "password");
    mustSucceed(await send(server(), { method: "DELETE", path: "/v1/secrets/app/password" }));
    const found: Read[] = [];
    while (existsSync(path)) found.push(await read(path));
    expect(
      found.filter(({ text, error }) => !(text === "" && /^(?:ECONNRESET|ENOENT|ECONNREFUSED)$/.test(error ?? ""))),
    ).to.deep.equal([]);
    expect((await read(join(directory, "smtp"))).text).not.to.equal("");
  });

  it("a deleted secret that no program requests loses its socket", async () => {
    const { directory, io } = await start(["app/password", "mail/smtp"]);
    mustSucceed(await send(server(), { method: "POST", path: "/v1/trash/app/password" }));
    await until(() => !existsSync(join(directory, "password")));
    expect(readdirSync(directory)).to.deep.equal(["smtp"]);
    mustSucceed(await send(server(), { method: "DELETE", path: "/v1/secrets/mail/smtp" }));
    await until(() => io.exitCode !== 0);
    expect([io.exitCode, /none of the secrets is left/.test(io.printed().stderr)]).to.deep.equal([4, true]);
  });

  it("waiting connections are reset by SIGKILL, and the next start replaces the old sockets", async () => {
    const directory = join(temporaryDirectory(), "c");
    const path = join(directory, "password");
    const args = [...mainArguments, "credentials", "--dir", directory, "app/password"];
    await mustLock(server());
    const child = spawn(node, args, {
      env: environment(here()),
      stdio: ["ignore", "ignore", "pipe"],
      timeout: 60_000,
      killSignal: "SIGKILL",
    });
    await until(() => existsSync(path) || child.exitCode !== null);
    const waiting = read(path);
    await sleep(100);
    child.kill("SIGKILL");
    expect(await waiting).to.deep.equal({ text: "", error: "ECONNRESET" });
    await mustUnlock(server());
    expect(existsSync(path)).to.equal(true);
    await start(["app/password"], directory);
    expect((await read(path)).text).to.equal("s3cret");
    for (const { name } of await tokens()) await send(server(), { method: "DELETE", path: `/v1/tokens/${name}` });
  });

  it("an existing file or another server's socket is not replaced", async () => {
    const directory = join(temporaryDirectory(), "c");
    const { directory: other } = await start(["app/password"]);
    await start(["mail/smtp"], directory);
    writeFileSync(join(directory, "password"), "mine");
    for (const [place, code] of [
      [directory, 7],
      [other, 7],
    ] as const) {
      const { code: ended, stderr } = await strongroom(here(), ["credentials", "--dir", place, "app/password"]);
      expect([ended, /is already there/.test(stderr)], stderr).to.deep.equal([code, true]);
    }
    expect((await read(join(other, "password"))).text).to.equal("s3cret");
    expect(statSync(join(directory, "password")).size).to.equal(4);
  });

  const refused: readonly (readonly [what: string, args: readonly string[], code: number, says: RegExp])[] = [
    ["a secret that is missing", ["app/none"], 4, /no secret at app\/none/],
    ["two secrets of one name", ["app/password", "password=mail/smtp"], 2, /two secrets/],
    ["a name that begins with a dot", [".x=app/password"], 2, /no name of a socket/],
    ["a path that is too long for a socket", [`${"n".repeat(100)}=app/password`], 2, /longer than 107 bytes/],
    ["a group that is missing", ["--group", "no-such-group", "app/password"], 2, /no group/],
  ];
  for (const [what, args, code, says] of refused) {
    it(`credentials refuses ${what}`, async () => {
      const ended = await strongroom(here(), ["credentials", "--dir", join(temporaryDirectory(), "c"), ...args]);
      expect([ended.code, says.test(ended.stderr)], ended.stderr).to.deep.equal([code, true]);
    });
  }

  it("credentials refuses a directory of another user", async function () {
    needs(this, isRoot, "root");
    const directory = temporaryDirectory();
    chownSync(directory, 65_534, 65_534);
    const { code, stderr } = await strongroom(here(), ["credentials", "--dir", directory, "app/password"]);
    expect([code, /must be your own directory/.test(stderr)], stderr).to.deep.equal([7, true]);
  });

  it("credentials admits a group, and refuses a directory that others can write", async () => {
    const { directory, end } = await start(["app/password", "--group", String(process.getgid?.() ?? 0)]);
    const modes = [directory, join(directory, "password")].map((path) => (statSync(path).mode & 0o777).toString(8));
    expect(modes).to.deep.equal(["750", "660"]);
    await end();
    chmodSync(directory, 0o770);
    const { code, stderr } = await strongroom(here(), ["credentials", "--dir", directory, "app/password"]);
    expect([code, /must be your own directory of mode 700: others/.test(stderr)], stderr).to.deep.equal([7, true]);
    chmodSync(directory, 0o700);
    const grouped = ["credentials", "--dir", directory, "--group", String(process.getgid?.() ?? 0), "app/password"];
    const unusable = await strongroom(here(), grouped);
    expect([unusable.code, /the group could not reach/.test(unusable.stderr)], unusable.stderr).to.deep.equal([
      7,
      true,
    ]);
  });
});
