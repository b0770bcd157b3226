/** `strongroom otp`: the current one-time code of a TOTP secret. */
import type { Command } from "commander";
import type { Secret, StrongroomClient } from "../../client/client.js";
import { type ClipboardFlags, copyAndClear, mustFindClipboard, withClipboard } from "../clipboard/clipboard.js";
import { isUrlOfCodes, oneTimeCode } from "../one-time/one-time-code.js";
import { type ConnectionFlags, withClient, withConnection } from "../session/connection.js";
import { getIfThere, mustGet } from "../session/missing-secrets.js";
import { type OutputFlags, printable, printJson, printValue, report, withResult } from "../session/output.js";
import { mustBePath } from "../session/secret-arguments.js";

type Flags = OutputFlags & ConnectionFlags & ClipboardFlags;

const details = `
The secret's value is an otpauth://totp/ URL, whose digits, period and algorithm
are used, or a secret in base32 (6 digits, 30 seconds, SHA-1). Unless it is a
URL, the secret totp in the folder of this name goes first, as import stores it.
The code is computed here from this computer's clock; the server never sees it.`;

export function define(command: Command): void {
  command
    .description("Prints the current one-time code (TOTP) of a secret; on a terminal, also how long it is valid.")
    .argument("<path>", "the secret's path, or its folder")
    .addHelpText("after", details);
  withResult(withConnection(withClipboard(command))).action(otp);
}

async function otp(path: string, flags: Flags): Promise<void> {
  const clipboard = flags.copy ? mustFindClipboard() : null;
  const wanted = mustBePath(path);
  const secret = await withClient(flags, (client) => getHereOrInside(client, wanted));
  const { code, secondsLeft, period } = oneTimeCode(secret.reveal(), {
    now: Date.now(),
    where: printable(secret.path),
  });
  if (clipboard !== null) {
    const seconds = await copyAndClear(clipboard, Buffer.from(code), flags);
    const text = `the code of ${secret.path} is in the clipboard and valid for ${secondsLeft} s`;
    return report(flags, { path: secret.path, copied: true, secondsLeft, clearedAfterSeconds: seconds }, text);
  }
  if (flags.json) return printJson({ path: secret.path, code, secondsLeft, period });
  printValue(Buffer.from(code));
  if (process.stdout.isTTY && !flags.quiet) process.stderr.write(`valid for ${secondsLeft} s\n`);
}

/** `import` stores an item's fields in a folder, beside which may be its password: `otp web/site` means `web/site/totp`. */
async function getHereOrInside(client: StrongroomClient, path: string): Promise<Secret> {
  const here = await getIfThere(client, path);
  if (here !== null && isUrlOfCodes(here.reveal())) return here; // a password may be valid base32, too
  return (await getIfThere(client, `${path}/totp`)) ?? here ?? mustGet(client, path);
}
