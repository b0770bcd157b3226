/** `--copy`: a value in the clipboard, by a program of the system, cleared later by a background process. */
import { spawn } from "node:child_process";
import { type Command, Option } from "commander";
import { duration } from "../../../config/readers.js";
import { clipboardClearFile } from "../../../program-files.js";
import { onlyWith } from "../args/args.js";
import { CommandFailure } from "../errors.js";
import type { Io } from "../io.js";
import { type CommandLine, feed, isInPath, output } from "../programs/programs.js";

export type ClipboardFlags = {
  readonly copy?: true;
  /** Seconds; 0 is never. */
  readonly clearAfter: number;
};

/** Standard input of the clearing process: with the MAC it recognizes the value without having it. */
export type ClearOrder = {
  readonly clipboard: Clipboard;
  readonly key: string;
  readonly mac: string;
  readonly seconds: number;
};

export function withClipboard(command: Command): Command {
  const changed = command
    .option("-c, --copy", "copy the value to the clipboard instead of printing it")
    .addOption(clearingOption());
  return onlyWith(changed, "clearAfter", "copy");
}

export function clearingOption(): Option {
  const meaning = "clear the clipboard after this time, such as 30s or 2m, if it still holds the value; 0: never";
  return new Option("--clear-after <duration>", meaning)
    .argParser((text: string) => Math.ceil(duration(86_400_000)(text) / 1000))
    .default(45, "45s");
}

/** @throws CommandFailure */
export function mustFindClipboard(io: Io): Clipboard {
  const found = findClipboard(io);
  if (found !== null) return found;
  const programs = "wl-clipboard on Wayland, xclip or xsel on X";
  throw new CommandFailure("unexpected", `no clipboard program found: install ${programs}`);
}

/** Copies and wipes the value; returns after how many seconds the clipboard is cleared. @throws CommandFailure */
export async function copyAndClear(
  io: Io,
  clipboard: Clipboard,
  value: Buffer,
  flags: ClipboardFlags,
): Promise<number> {
  const { createHmac, randomBytes } = await import("node:crypto"); // slow to load: only for -c
  const key = randomBytes(32);
  const mac = createHmac("sha256", key).update(value).digest("hex");
  try {
    await copy(io, clipboard, value);
  } finally {
    value.fill(0);
  }
  const seconds = flags.clearAfter;
  if (seconds > 0) await startClearing(io, { clipboard, key: key.toString("hex"), mac, seconds });
  return seconds;
}

async function copy(io: Io, clipboard: Clipboard, value: Buffer): Promise<void> {
  const status = await feed(io, await sensitive(io, clipboard.copy), value).catch(() => null);
  if (status === 0) return;
  throw new CommandFailure("unexpected", `${clipboard.copy[0]} failed: the value is not in the clipboard`);
}

/** Marks the content, so that clipboard managers keep no copy; older versions of wl-copy cannot. */
async function sensitive(io: Io, command: CommandLine): Promise<CommandLine> {
  if (command[0] !== "wl-copy") return command;
  const help = await output(io, ["wl-copy", "--help"]).catch(() => Buffer.alloc(0));
  return help.includes("--sensitive") ? [...command, "--sensitive"] : command;
}

/** Detached, so that it outlives the terminal. */
async function startClearing({ env, program: [node] }: Io, order: ClearOrder): Promise<void> {
  const child = spawn(node, [clipboardClearFile], { detached: true, stdio: ["pipe", "ignore", "ignore"], env });
  await new Promise((resolve, reject) => {
    child.on("error", reject);
    child.stdin.on("error", reject).end(JSON.stringify(order), () => resolve(null));
  });
  child.unref();
}

/** Values pass through pipes, never through arguments. */
export type Clipboard = { readonly copy: CommandLine; readonly paste: CommandLine; readonly clear: CommandLine };

type Candidate = Clipboard & { readonly works: (environment: NodeJS.ProcessEnv) => boolean };

const onWayland = (environment: NodeJS.ProcessEnv) => Boolean(environment["WAYLAND_DISPLAY"]);
const onX = (environment: NodeJS.ProcessEnv) => Boolean(environment["DISPLAY"]);
const always = () => true;

const candidates: readonly Candidate[] = [
  { works: onWayland, copy: ["wl-copy"], paste: ["wl-paste", "--no-newline"], clear: ["wl-copy", "--clear"] },
  {
    works: onX,
    copy: ["xclip", "-selection", "clipboard", "-in"],
    paste: ["xclip", "-selection", "clipboard", "-out"],
    clear: ["xclip", "-selection", "clipboard", "-in"],
  },
  {
    works: onX,
    copy: ["xsel", "--clipboard", "--input"],
    paste: ["xsel", "--clipboard", "--output"],
    clear: ["xsel", "--clipboard", "--clear"],
  },
  { works: always, copy: ["pbcopy"], paste: ["pbpaste"], clear: ["pbcopy"] },
  {
    works: always, // Windows, and WSL
    copy: ["clip.exe"],
    paste: ["powershell.exe", "-NoProfile", "-Command", "Get-Clipboard -Raw"],
    clear: ["clip.exe"],
  },
];

/** Returns the first candidate whose programs are all installed, or null. */
function findClipboard({ env }: Io): Clipboard | null {
  const isThere = ([program]: CommandLine) => isInPath(program, env["PATH"] ?? "");
  const found = candidates.find(({ works, copy, paste, clear }) => works(env) && [copy, paste, clear].every(isThere));
  return found === undefined ? null : { copy: found.copy, paste: found.paste, clear: found.clear };
}
