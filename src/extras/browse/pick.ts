/**
 * `strongroom pick`: a secret chosen in a menu program such as fzf or rofi.
 * Its value, a field of it, or its one-time code goes into the clipboard, which is cleared later.
 * The menu gets paths only.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { type Command, Option } from "commander";
import { secretText } from "../../cli/kit/args/fields.js";
import { folderPrefix } from "../../cli/kit/args/paths.js";
import { codeHereOrInside } from "../../cli/kit/connection/one-time-code.js";
import { mustGet } from "../../cli/kit/connection/secrets.js";
import { type ConnectionFlags, withClient, withConnection } from "../../cli/kit/connection/server.js";
import { CommandFailure } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import {
  type ClipboardFlags,
  clearingOption,
  copyAndClear,
  mustFindClipboard,
} from "../../cli/kit/output/clipboard.js";
import { type OutputFlags, printable, report, withOutput } from "../../cli/kit/output.js";
import { readableEnvironment } from "../../cli/kit/programs/inherited.js";
import { type CommandLine, isInPath } from "../../cli/kit/programs/programs.js";
import { withoutTokens } from "../../cli/kit/programs/without-tokens.js";
import { type SecretList, type StrongroomClient, StrongroomError } from "../../client/client.js";

/** Menu programs: each reads lines and prints the chosen line. fzf draws on the terminal, the others open a window. */
const menus = {
  fzf: ["fzf", "--prompt=secret> "],
  rofi: ["rofi", "-dmenu", "-i", "-p", "secret"],
  wofi: ["wofi", "--dmenu", "--insensitive", "--prompt", "secret"],
  dmenu: ["dmenu", "-i", "-l", "20", "-p", "secret"],
} as const satisfies Readonly<Record<string, CommandLine>>;

type Menu = keyof typeof menus;

type Flags = ConnectionFlags &
  OutputFlags &
  Omit<ClipboardFlags, "copy"> & { readonly menu?: Menu; readonly otp?: true };

const details = `
Without --menu: fzf on a terminal; elsewhere, as from a keyboard shortcut, wofi
on Wayland, or rofi or dmenu. The menu program gets paths only. The value goes
through a pipe into the clipboard and is never printed.`;

export function define(command: Command, io: Io): void {
  const menu = new Option("--menu <program>", "the program that shows the menu");
  command
    .description("Lets you choose a secret in a menu, and copies its value to the clipboard.")
    .argument("[folder]", "only what is in this folder")
    .addOption(menu.choices(Object.keys(menus)))
    .option("--otp", "copy the one-time code instead of the value")
    .addOption(clearingOption());
  withOutput(withConnection(command))
    .addHelpText("after", details)
    .action((folder, flags) => pick(io, folder, flags));
}

async function pick(io: Io, folder = "", flags: Flags): Promise<void> {
  const clipboard = mustFindClipboard(io);
  const menu = flags.menu ?? usualMenu(io);
  if (!isInPath(menu, io.env["PATH"] ?? "")) {
    throw new CommandFailure("usage", `${menu} is not installed: install it, or choose another one with --menu`);
  }
  const { path, value } = await withClient(io, flags, async (client) => {
    const chosen = await choosePath(io, client, menus[menu], folderPrefix(folder));
    if (!flags.otp) return { path: chosen, value: secretText(await mustGet(client, chosen)) };
    const { path, code } = await codeHereOrInside(client, chosen);
    return { path, value: code };
  });
  const seconds = await copyAndClear(io, clipboard, Buffer.from(value), flags);
  const text = `${path} is in the clipboard${seconds === 0 ? "" : ` for ${seconds} s`}`;
  report(io, flags, { path, copied: true, clearedAfterSeconds: seconds }, text);
}

/** @throws CommandFailure usage, when none is installed that could be seen here */
function usualMenu(io: Io): Menu {
  const { PATH = "", WAYLAND_DISPLAY, DISPLAY } = io.env;
  const onScreen: readonly Menu[] = WAYLAND_DISPLAY
    ? ["wofi", "rofi", "dmenu"]
    : DISPLAY
      ? ["rofi", "dmenu", "wofi"]
      : [];
  const onTerminal: readonly Menu[] = io.stderr.isTTY ? ["fzf"] : [];
  const found = [...onTerminal, ...onScreen].find((menu) => isInPath(menu, PATH));
  if (found !== undefined) return found;
  throw new CommandFailure(
    "usage",
    "no menu program found: install fzf, rofi, wofi or dmenu, or use  strongroom browse",
  );
}

/** The menu is shown while the list is still loading. @throws CommandFailure aborted, when nothing is chosen */
async function choosePath(
  io: Io,
  client: StrongroomClient,
  [program, ...args]: CommandLine,
  prefix: string,
): Promise<string> {
  const chosen = new AbortController();
  const pages = client.pages({ prefix, limit: 1000, signal: chosen.signal });
  const first = await pages.next(); // a locked vault is unlocked before the menu takes the terminal
  const env = withoutTokens(readableEnvironment(io));
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"], env });
  const ended = once(child, "close");
  child.stdin.on("error", () => {}); // it is closed as soon as a line is chosen
  const paths = new Map<string, string>(); // by what the menu shows
  const give = ({ entries }: SecretList) => {
    for (const { path } of entries) paths.set(printable(path), path);
    if (child.stdin.writable) child.stdin.write(entries.map(({ path }) => `${printable(path)}\n`).join(""));
  };
  if (!first.done) give(first.value);
  const feeding = feed(pages, give).finally(() => child.stdin.end());
  const [line] = await Promise.all([text(child.stdout), ended]);
  chosen.abort();
  await feeding.catch(unlessAborted);
  return mustBeAmong(paths, line.replace(/\r?\n$/, ""));
}

async function feed(pages: AsyncIterable<SecretList>, give: (page: SecretList) => void): Promise<void> {
  for await (const page of pages) give(page);
}

function unlessAborted(error: unknown): void {
  if (!(error instanceof StrongroomError) || error.code !== "ABORTED") throw error;
}

/** Some menus return what is typed, whether or not it is a line. */
function mustBeAmong(paths: ReadonlyMap<string, string>, line: string): string {
  if (line === "") throw new CommandFailure("aborted", "nothing was chosen");
  const path = paths.get(line);
  if (path !== undefined) return path;
  throw new CommandFailure("notFound", "what was typed is not a path of the list: choose one of its lines");
}
