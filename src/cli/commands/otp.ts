/** `strongroom otp`: the current one-time code (TOTP, RFC 6238) of a secret. The server computes it: the seed stays there. */
import type { Command } from "commander";
import { mustBePath } from "../kit/args/paths.js";
import { codeHereOrInside } from "../kit/connection/one-time-code.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import type { Io } from "../kit/io.js";
import { type ClipboardFlags, copyAndClear, mustFindClipboard, withClipboard } from "../kit/output/clipboard.js";
import { type OutputFlags, printJson, printValue, report, say, withResult } from "../kit/output.js";

type Flags = OutputFlags & ConnectionFlags & ClipboardFlags;

const details = `
The secret's value is an otpauth://totp/ URL, whose digits, period and algorithm
are used, Steam's URL (steam://, otpauth://steam/ or encoder=steam), KeeOtp's
key=…&size=…&step=…, or a secret in base32 (6 digits, 30 seconds, SHA-1). A seed
of a counter (HOTP), or with unknown settings, is an error. Unless web/wiki
is a URL, otp web/wiki first looks for web/wiki/totp, where import stores it.
The server computes the code by its clock. The secret's value stays there: a
token with the scope use gets codes and can read nothing.`;

export function define(command: Command, io: Io): void {
  command
    .description("Prints the current one-time code (TOTP) of a secret; on a terminal, also how long it is valid.")
    .argument("<path>", "the secret's path, or its folder")
    .addHelpText("after", details);
  withResult(withConnection(withClipboard(command))).action((path, flags) => otp(io, path, flags));
}

async function otp(io: Io, path: string, flags: Flags): Promise<void> {
  const clipboard = flags.copy ? mustFindClipboard(io) : null;
  const wanted = mustBePath(path);
  const found = await withClient(io, flags, (client) => codeHereOrInside(client, wanted));
  const { code, validFor: secondsLeft, period } = found;
  if (clipboard !== null) {
    const seconds = await copyAndClear(io, clipboard, Buffer.from(code), flags);
    const text = `the code of ${found.path} is in the clipboard and valid for ${secondsLeft} s`;
    return report(io, flags, { path: found.path, copied: true, secondsLeft, clearedAfterSeconds: seconds }, text);
  }
  if (flags.json) return printJson(io, { path: found.path, code, secondsLeft, period });
  printValue(io, Buffer.from(code));
  if (io.stdout.isTTY && !flags.quiet) say(io, `valid for ${secondsLeft} s\n`);
}
