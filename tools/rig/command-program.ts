/**
 * A `strongroom` for shells and other programs that tests start: the tests' own process runs the command, with the streams,
 * directory and variables of a client in Python, which costs a tenth of Node's start.
 */
import { once } from "node:events";
import { closeSync, constants, createReadStream, createWriteStream, openSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import type { Io, OutputStream } from "../../src/cli/kit/io.js";
import { later, temporaryDirectory } from "./clean-up.js";
import { isInstalled, mainArguments, node } from "./process.js";
import { pythonFile } from "./python.js";
import { needProcess, runToItsEnd, stringIo, writeTo } from "./string-io.js";

type Order = {
  readonly pid: number;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The name of the terminal that the client has. */
  readonly terminal: string | null;
  /** By descriptor: whether it is a terminal. */
  readonly isTerminal: readonly boolean[];
};

/** Descriptors that are sockets cannot be opened by another process: the real program is run. */
const client = (python: string, place: string) => `#!${python} -IS
import json, os, socket, stat, sys
args, program = sys.argv[1:], ${JSON.stringify([node, ...mainArguments])}
try: sockets = [fd for fd in range(3) if stat.S_ISSOCK(os.fstat(fd).st_mode)]
except OSError: sockets = [0]
if sockets or "STRONGROOM_AUTOSTART" in os.environ or set(args) & set(${JSON.stringify([...needProcess, "--autostart"])}):
    os.execv(program[0], program + args)
terminals = [os.isatty(fd) for fd in range(3)]
terminal = os.ttyname(terminals.index(True)) if any(terminals) else None
order = {"pid": os.getpid(), "args": args, "cwd": os.getcwd(), "env": dict(os.environ), "terminal": terminal, "isTerminal": terminals}
with socket.socket(socket.AF_UNIX) as here:
    here.connect(${JSON.stringify(place)})
    here.sendall(json.dumps(order).encode())
    here.shutdown(socket.SHUT_WR)
    os._exit(int(here.recv(9) or b"70"))
`;

/** Makes the program, in a directory of its own; returns its file. Without Python it is the real one. */
export async function makeCommandProgram(): Promise<string> {
  const file = join(temporaryDirectory(), "strongroom");
  const python = isInstalled ? null : pythonFile();
  if (python === null) {
    const words = [node, ...mainArguments].map((word) => `'${word}'`).join(" ");
    writeFileSync(file, `#!/bin/sh\nexec ${words} "$@"\n`, { mode: 0o755 });
    return file;
  }
  const place = join(temporaryDirectory(), "socket");
  const server = createServer({ allowHalfOpen: true }, (socket) => void serve(socket));
  await new Promise<void>((resolve) => server.listen(place, resolve));
  later(() => void server.close());
  writeFileSync(file, client(python, place), { mode: 0o755 });
  return file;
}

async function serve(socket: Socket): Promise<void> {
  socket.on("error", () => {}); // the client was killed
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk)); // reading it as an iterator would end the other half
  await once(socket, "end");
  const order = JSON.parse(Buffer.concat(chunks).toString()) as Order;
  const code = await runFor(order).catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    return 70;
  });
  socket.end(String(code));
}

let running = 0;
const ownDirectory = process.cwd();

async function runFor({ pid, args, cwd, env, terminal, isTerminal }: Order): Promise<number> {
  const open = (fd: number, flags: number) => openSync(`/proc/${pid}/fd/${fd}`, flags | constants.O_NOCTTY);
  const input = open(0, isTerminal[0] === true ? constants.O_RDWR : constants.O_RDONLY);
  const outputs = [1, 2].map((fd) => open(fd, constants.O_WRONLY | constants.O_APPEND));
  const [stdout, stderr] = outputs.map((fd, n) => outputOn(fd, isTerminal[n + 1] === true)) as [Output, Output];
  const io = stringIo({
    env: { ...env },
    cwd: () => cwd,
    stdin: isTerminal[0] === true ? Object.assign(Readable.from([]), { isTTY: true }) : inputOn(input),
    stdinDescriptor: input,
    stdout: stdout.stream,
    stderr: stderr.stream,
    openTerminal: (flags = constants.O_RDWR) =>
      terminal === null ? null : openSync(terminal, flags | constants.O_NOCTTY),
  });
  running++;
  process.chdir(cwd); // a command opens the files that its arguments name
  try {
    await runToItsEnd(args, io);
    await Promise.all([stdout.end(), stderr.end()]);
    return io.exitCode;
  } finally {
    if (--running === 0) process.chdir(ownDirectory);
    for (const fd of [input, ...outputs]) closeSync(fd);
  }
}

function inputOn(fd: number): Io["stdin"] {
  return createReadStream("", { fd, autoClose: false });
}

type Output = { readonly stream: OutputStream; end(): Promise<void> };

/** A terminal's stream writes in the order of the calls; a pipe's reader may be another command in this process. */
function outputOn(fd: number, isTTY: boolean): Output {
  if (isTTY) {
    return { stream: Object.assign(new Writable({ write: writeTo(fd) }), { isTTY }), end: async () => {} };
  }
  const stream = createWriteStream("", { fd, autoClose: false });
  return { stream, end: () => new Promise((resolve) => stream.on("error", () => resolve()).end(() => resolve())) };
}
