/** The user's editor on a temporary file: start, exit status, signals. */
import { type ChildProcess, spawn } from "node:child_process";
import type { Bytes } from "../../../../workers/protocol.js";
import { CommandFailure } from "../errors.js";
import type { Io } from "../io.js";
import { readableEnvironment } from "../programs/inherited.js";
import { withoutTokens } from "../programs/without-tokens.js";
import { Scratch } from "./scratch.js";

const endings = ["SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/** Returns the bytes as the user leaves them in the editor. @throws CommandFailure aborted, usage */
export async function editBytes(io: Io, bytes: Uint8Array, onDisk: boolean): Promise<Bytes> {
  const named = io.env["VISUAL"] || io.env["EDITOR"];
  if (!named && !io.stdin.isTTY) {
    throw new CommandFailure("usage", "there is no terminal for vi: set VISUAL or EDITOR, or use  strongroom put");
  }
  const editor = named || "vi";
  let scratch: Scratch | null = null;
  let child: ChildProcess | null = null;
  const release = guard(io, (signal) => {
    if (signal !== null) child?.kill(signal);
    scratch?.remove();
  });
  try {
    scratch = Scratch.make(io, bytes, onDisk);
    child = start(io, editor, scratch.file);
    refuse(editor, await childExit(child));
    return scratch.read();
  } finally {
    scratch?.remove();
    release();
  }
}

/** One program and its arguments, without shell syntax. */
const oneProgram = /^[^=;|&()<>$`\s]+(?:\s[^;|&()<>$`]*)?$/;

/** Uses a shell, since VISUAL may hold arguments; with `exec` where possible, so that signals reach the editor. */
function start(io: Io, editor: string, file: string): ChildProcess {
  const command = oneProgram.test(editor) ? `exec ${editor} "$1"` : `${editor} "$1"`;
  const env = withoutTokens(readableEnvironment(io)); // plugins of an editor have no business with the vault
  return spawn("/bin/sh", ["-c", command, "sh", file], { stdio: "inherit", env });
}

function childExit(child: ChildProcess): Promise<number | NodeJS.Signals> {
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code, signal) => resolve(signal ?? code ?? 0));
  });
}

function refuse(editor: string, end: number | NodeJS.Signals): void {
  if (end === 0) return;
  if (end === 126 || end === 127) {
    throw new CommandFailure("usage", `the editor ${editor} cannot be started: set VISUAL or EDITOR`);
  }
  throw new CommandFailure("aborted", `the editor exited with ${end}: nothing was stored`);
}

/** Leaves Ctrl-C to the editor; every other end of this process cleans up first. Set up before there is a file. */
function guard(io: Io, cleanUp: (signal: NodeJS.Signals | null) => void): () => void {
  const ignore = () => {};
  const onExit = () => cleanUp(null);
  const end = (signal: NodeJS.Signals) => {
    cleanUp(signal);
    release();
    io.kill(io.pid, signal); // without our handler, it ends the process with the right status
  };
  const release = () => {
    io.events.off("SIGINT", ignore).off("exit", onExit);
    for (const signal of endings) io.events.off(signal, end);
  };
  io.events.on("SIGINT", ignore).on("exit", onExit);
  for (const signal of endings) io.events.on(signal, end);
  return release;
}
