/** `strongroom review`: opens the review page in a browser, or prints its address. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Command } from "commander";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { printLine } from "../kit/output.js";
import { readableEnvironment } from "../kit/programs/inherited.js";
import { withoutTokens } from "../kit/programs/without-tokens.js";

type Flags = ConnectionFlags & { readonly printUrl?: true };

export function define(command: Command, io: Io): void {
  command
    .description(
      "Opens a page of the server that shows who holds which key, what the server is doing, ways in, tokens, the audit " +
        "log and its protections. The page cannot read a secret. The server must run with --review-page, and the browser " +
        "must trust its certificate. The address has a code that works once, within a minute.",
    )
    .option("--print-url", "print the address with the code instead of opening a browser");
  withConnection(command).action((flags) => review(io, flags));
}

async function review(io: Io, flags: Flags): Promise<void> {
  const { url } = await withClient(io, flags, (client) => client.createReview());
  if (flags.printUrl) return printLine(io, url);
  const opener = io.platform === "darwin" ? "open" : "xdg-open";
  const child = spawn(opener, [url], { stdio: "ignore", detached: true, env: withoutTokens(readableEnvironment(io)) });
  const isOpened = await Promise.race([once(child, "spawn").then(() => true), once(child, "error").then(() => false)]);
  child.unref();
  if (!isOpened)
    throw new CommandFailure("unexpected", `cannot start ${opener}: use --print-url, and open the address`);
}
