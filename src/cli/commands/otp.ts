/** `strongroom otp`: the current one-time code (TOTP, RFC 6238) of an `otpauth://totp/` URL or a secret in base32. */
import type { Command } from "commander";
import { Secret as Seed, TOTP, URI } from "otpauth";
import type { Secret, StrongroomClient } from "../../client/client.js";
import { type ClipboardFlags, copyAndClear, mustFindClipboard, withClipboard } from "../lib/clipboard.js";
import { CommandFailure } from "../lib/errors.js";
import { type OutputFlags, printable, printJson, printValue, report, withResult } from "../lib/output.js";
import { mustBePath } from "../lib/paths.js";
import { getIfThere, mustGet } from "../lib/secrets.js";
import { type ConnectionFlags, withClient, withConnection } from "../lib/server.js";

type Flags = OutputFlags & ConnectionFlags & ClipboardFlags;

const details = `
The secret's value is an otpauth://totp/ URL, whose digits, period and algorithm
are used, or a secret in base32 (6 digits, 30 seconds, SHA-1).
otp web/wiki first looks for web/wiki/totp, where import stores it.
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
  if (here !== null && isUrlOfCodes(here.reveal())) return here; // a password may also be valid base32
  return (await getIfThere(client, `${path}/totp`)) ?? here ?? mustGet(client, path);
}

type OneTimeCode = {
  readonly code: string;
  /** Seconds for which the code is still valid. */
  readonly secondsLeft: number;
  /** Seconds. */
  readonly period: number;
};

/** Returns the code of that moment. @throws CommandFailure usage, which never quotes the value */
export function oneTimeCode(
  value: string,
  { now, where }: { readonly now: number; readonly where: string },
): OneTimeCode {
  const generator = generatorFrom(value.trim(), where);
  const { period } = generator;
  return {
    code: generator.generate({ timestamp: now }),
    secondsLeft: period - (Math.floor(now / 1000) % period),
    period,
  };
}

function isUrlOfCodes(value: string): boolean {
  return /^otpauth:/i.test(value.trim());
}

function generatorFrom(text: string, where: string): TOTP {
  if (/^otpauth:\/\/hotp\//i.test(text)) {
    throw new CommandFailure("usage", `${where} counts its codes (HOTP): only codes by time (TOTP) are supported`);
  }
  const generator = isUrlOfCodes(text) ? fromUrl(text) : fromBase32(text);
  if (generator === null) {
    throw new CommandFailure("usage", `${where} is neither an otpauth:// URL nor a base32 secret`);
  }
  return generator;
}

/** DANGER: the library's errors may quote the URL, secret included. */
function fromUrl(url: string): TOTP | null {
  try {
    const parsed = URI.parse(url);
    return parsed instanceof TOTP && parsed.secret.bytes.length > 0 ? parsed : null;
  } catch {
    return null;
  }
}

/** Issuers show the secret in groups, in small letters, with or without padding; 16 characters are 80 bits. */
function fromBase32(text: string): TOTP | null {
  const compact = text.replace(/[\s-]/g, "").replace(/=+$/, "").toUpperCase();
  return /^[A-Z2-7]{16,}$/.test(compact) ? new TOTP({ secret: Seed.fromBase32(compact) }) : null;
}
