/** `strongroom review`: opens the review page in a browser, or prints its address. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Command } from "commander";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import type { Io } from "../kit/io.js";
import { printLine, say } from "../kit/output.js";
import { readableEnvironment } from "../kit/programs/inherited.js";
import { withoutTokens } from "../kit/programs/without-tokens.js";

type Flags = ConnectionFlags & { readonly printUrl?: true };

export function define(command: Command, io: Io): void {
  command
    .description(
      "Opens a page of the server that shows who holds which key, what the server is doing, ways in, tokens, the audit " +
        "log and its protections. The page cannot read a secret, and is served until its token ends. The browser must trust " +
        "the server's certificate. The address has a code that works once, within a minute; it is printed where there is no browser.",
    )
    .option("--print-url", "print the address with the code instead of opening a browser");
  withConnection(command).action((flags) => review(io, flags));
}

async function review(io: Io, flags: Flags): Promise<void> {
  const { url } = await withClient(io, flags, (client) => client.createReview());
  if (!flags.printUrl && (await opensInBrowser(io, url))) return;
  if (!flags.printUrl) say(io, "no browser can be started here: open this address within a minute\n");
  printLine(io, url);
}

/** A program that opens the address may end with the browser, or right away. */
const failsWithinMs = 2_000;

async function opensInBrowser(io: Io, url: string): Promise<boolean> {
  const isMac = io.platform === "darwin";
  if (!isMac && !io.env["DISPLAY"] && !io.env["WAYLAND_DISPLAY"]) return false;
  const env = withoutTokens(readableEnvironment(io));
  const child = spawn(isMac ? "open" : "xdg-open", [url], { stdio: "ignore", detached: true, env });
  const waiting = new AbortController();
  const isOpened = await Promise.race([
    once(child, "exit").then(
      ([code]) => code === 0,
      () => false,
    ),
    io.sleep(failsWithinMs, waiting.signal).then(
      () => true,
      () => true,
    ),
  ]);
  waiting.abort();
  child.unref();
  return isOpened;
}
