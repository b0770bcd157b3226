/** Owns the editor: which one, that it has the terminal to itself, and what its end or a signal means. */
import { type ChildProcess, spawn } from "node:child_process";
import type { Bytes } from "../../../workers/protocol.js";
import { CommandFailure } from "../session/exit-codes.js";
import { Scratch } from "./memory-file.js";

const endings = ["SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/** What the user makes of the bytes. @throws CommandFailure aborted, usage */
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

/** One program and its arguments: nothing that only a shell could do. */
const oneProgram = /^[^=;|&()<>$`\s]+(?:\s[^;|&()<>$`]*)?$/;

/**
 * Through a shell, since people set it to more than a program's name. The shell gives its place to the program where it
 * can, so that signals reach that.
 */
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
    throw new CommandFailure("usage", `the editor ${editor} cannot be started: set VISUAL or EDITOR to one that can`);
  }
  throw new CommandFailure("aborted", `the editor ended with ${end}: nothing was stored`);
}

/** The terminal's Ctrl-C is the editor's business: it ends, or goes on. Whatever else ends us, removes the file first. */
function guard(scratch: Scratch, child: ChildProcess): () => void {
  const ignore = () => {};
  const removeNow = () => scratch.remove();
  const end = (signal: NodeJS.Signals) => {
    child.kill(signal);
    scratch.remove();
    release();
    process.kill(process.pid, signal); // nobody handles it now: it ends the process as it should
  };
  const release = () => {
    process.off("SIGINT", ignore).off("exit", removeNow);
    for (const signal of endings) process.off(signal, end);
  };
  process.on("SIGINT", ignore).on("exit", removeNow);
  for (const signal of endings) process.on(signal, end);
  return release;
}
