/** `--copy`: a value in the clipboard, cleared later by a background process. */
import { spawn } from "node:child_process";
import { createHmac, randomBytes } from "node:crypto";
import { type Command, Option } from "commander";
import { duration } from "../../config/readers.js";
import { clipboardClearFile } from "../../program-files.js";
import { CommandFailure } from "../session/exit-codes.js";
import { onlyWith } from "../session/flags.js";
import { feed } from "../session/programs.js";
import { type Clipboard, findClipboard } from "./clipboard-tools.js";

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
    .addOption(
      new Option(
        "--clear-after <duration>",
        "clear the clipboard after this time, such as 30s or 2m, if it still holds the value; 0: never",
      )
        .argParser(clearingTime)
        .default(45, "45s"),
    );
  return onlyWith(changed, "clearAfter", "copy");
}

function clearingTime(text: string): number {
  return Math.ceil(duration(86_400_000)(text) / 1000);
}

/** @throws CommandFailure */
export function mustFindClipboard(): Clipboard {
  const found = findClipboard();
  if (found !== null) return found;
  const programs = "wl-clipboard on Wayland, xclip or xsel on X";
  throw new CommandFailure("unexpected", `no clipboard program is found: install ${programs}`);
}

/** Copies and wipes the value; returns after how many seconds the clipboard is cleared. @throws CommandFailure */
export async function copyAndClear(clipboard: Clipboard, value: Buffer, flags: ClipboardFlags): Promise<number> {
  const key = randomBytes(32);
  const mac = createHmac("sha256", key).update(value).digest("hex");
  try {
    await copy(clipboard, value);
  } finally {
    value.fill(0);
  }
  const seconds = flags.clearAfter;
  if (seconds > 0) await startClearing({ clipboard, key: key.toString("hex"), mac, seconds });
  return seconds;
}

async function copy(clipboard: Clipboard, value: Buffer): Promise<void> {
  const status = await feed(clipboard.copy, value).catch(() => null);
  if (status === 0) return;
  throw new CommandFailure("unexpected", `${clipboard.copy[0]} failed: the value is not in the clipboard`);
}

/** Detached, so that it outlives the terminal. */
async function startClearing(order: ClearOrder): Promise<void> {
  const child = spawn(process.execPath, [clipboardClearFile], { detached: true, stdio: ["pipe", "ignore", "ignore"] });
  await new Promise((resolve, reject) => {
    child.on("error", reject);
    child.stdin.on("error", reject).end(JSON.stringify(order), () => resolve(null));
  });
  child.unref();
}
