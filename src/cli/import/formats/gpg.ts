/** Decryption of one file by the user's own gpg. The plaintext comes through a pipe: it is never on disk. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { systemCode } from "../../../errors.js";
import { CommandFailure } from "../../session/exit-codes.js";
import { printable } from "../../session/output.js";

export type GpgOptions = {
  /** Forbids the question for the key's passphrase. */
  readonly nonInteractive: boolean;
};

export type Decrypted = { readonly bytes: Buffer } | { readonly problem: string };

/** @throws CommandFailure, when no other file can be decrypted either: gpg is missing, or its key is locked */
export async function decryptFile(file: string, { nonInteractive }: GpgOptions): Promise<Decrypted> {
  const mode = nonInteractive ? ["--pinentry-mode", "cancel"] : [];
  const args = ["--quiet", "--batch", "--status-fd", "3", ...mode, "--decrypt", "--", file];
  const { bytes, log, status, code } = await runGpg(args, nonInteractive);
  if (code === 0) return { bytes };
  bytes.fill(0);
  if (!isKeyLocked(status)) return { problem: printable(log.trim().split("\n").at(-1) ?? "gpg cannot decrypt it") };
  const name = printable(file);
  const remedy = `unlock it with  gpg --decrypt ${name}  and import again`;
  throw new CommandFailure("unexpected", `gpg cannot unlock the secret key for ${name}: ${remedy}`);
}

/** The key is there, but gives no session key. gpg's messages call that "No secret key", like a key that is missing. */
function isKeyLocked(status: string): boolean {
  const says = (keyword: string) => status.includes(`[GNUPG:] ${keyword}`);
  return says("KEY_CONSIDERED") && says("DECRYPTION_FAILED") && !says("NO_SECKEY") && !says("DECRYPTION_INFO");
}

async function runGpg(args: readonly string[], nonInteractive: boolean) {
  const child = spawn("gpg", args, { stdio: [nonInteractive ? "ignore" : "inherit", "pipe", "pipe", "pipe"] });
  const ended = once(child, "close");
  const [bytes, log, status, [code]] = await Promise.all([
    bytesOf(child.stdout),
    bytesOf(child.stderr),
    bytesOf(child.stdio[3] as Readable),
    ended.catch((error) => Promise.reject(systemCode(error) === "ENOENT" ? missing() : error)),
  ]);
  return { bytes, log: log.toString("utf8"), status: status.toString("utf8"), code: code as number | null };
}

function bytesOf(stream: Readable | null): Promise<Buffer> {
  return stream === null ? Promise.resolve(Buffer.alloc(0)) : buffer(stream);
}

function missing(): CommandFailure {
  return new CommandFailure("unexpected", "gpg is not found, which decrypts a password store: install GnuPG");
}
