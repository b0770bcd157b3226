/** The user's editor on a temporary file: start, exit status, signals. */
import { type ChildProcess, spawn } from "node:child_process";
import type { Bytes } from "../../../workers/protocol.js";
import { CommandFailure } from "../session/exit-codes.js";
import { Scratch } from "./memory-file.js";

const endings = ["SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/** Returns the bytes as the user leaves them in the editor. @throws CommandFailure aborted, usage */
export async function editBytes(bytes: Uint8Array, onDisk: boolean): Promise<Bytes> {
  const editor = process.env["VISUAL"] || process.env["EDITOR"] || "vi";
  const scratch = Scratch.make(bytes, onDisk);
  let release = () => {};
  try {
    const child = start(editor, scratch.file);
    release = guard(scratch, child);
    refuse(editor, await endOf(child));
    return scratch.read();
  } finally {
    release();
    scratch.remove();
  }
}

/** One program and its arguments, without shell syntax. */
const oneProgram = /^[^=;|&()<>$`\s]+(?:\s[^;|&()<>$`]*)?$/;

/** Uses a shell, since VISUAL may hold arguments; with `exec` where possible, so that signals reach the editor. */
function start(editor: string, file: string): ChildProcess {
  const command = oneProgram.test(editor) ? `exec ${editor} "$1"` : `${editor} "$1"`;
  return spawn("/bin/sh", ["-c", command, "sh", file], { stdio: "inherit" });
}

function endOf(child: ChildProcess): Promise<number | NodeJS.Signals> {
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

/** Leaves Ctrl-C to the editor; every other signal that ends us removes the file first. */
function guard(scratch: Scratch, child: ChildProcess): () => void {
  const ignore = () => {};
  const removeNow = () => scratch.remove();
  const end = (signal: NodeJS.Signals) => {
    child.kill(signal);
    scratch.remove();
    release();
    process.kill(process.pid, signal); // without our handler, it ends the process with the right status
  };
  const release = () => {
    process.off("SIGINT", ignore).off("exit", removeNow);
    for (const signal of endings) process.off(signal, end);
  };
  process.on("SIGINT", ignore).on("exit", removeNow);
  for (const signal of endings) process.on(signal, end);
  return release;
}
