/** Shared parts of the commands of transit keys: input as a stream, and the flags that say how to sign. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { type Command, Option } from "commander";
import type { SignOptions, StrongroomClient, TransitKeyType } from "../../../client/client.js";
import { systemCode } from "../../../errors.js";
import { failureReason } from "../../../files/file-problem.js";
import { CommandFailure } from "../errors.js";
import type { Io } from "../io.js";
import { type Progress, progressBar } from "../output/progress.js";
import { printable } from "../output.js";

/** A file, or standard input without one. `size`: null where it is not known. */
export type Input = { readonly parts: AsyncIterable<Uint8Array>; readonly size: number | null };

/** @throws CommandFailure usage */
export async function openInput(io: Io, file: string | undefined): Promise<Input> {
  if (file === undefined || file === "-") return { parts: io.stdin, size: null };
  const unreadable = (error: unknown) =>
    new CommandFailure("usage", `${printable(file)} cannot be read${failureReason(systemCode(error))}`);
  const found = await stat(file).catch((error: unknown) => {
    throw unreadable(error);
  });
  if (found.isDirectory()) throw new CommandFailure("usage", `${printable(file)} is a directory`);
  return { parts: reading(file, unreadable), size: found.isFile() ? found.size : null };
}

async function* reading(file: string, failure: (error: unknown) => CommandFailure): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(file);
  } catch (error) {
    throw failure(error);
  }
}

/** Shows how much of an input has been read, on a terminal. */
export async function* withProgress(io: Io, label: string, { parts, size }: Input): AsyncGenerator<Uint8Array> {
  const bar: Progress | null = size === null ? null : progressBar(io, label, "bytes");
  let done = 0;
  try {
    for await (const part of parts) {
      yield part;
      done += part.length;
      bar?.show(done, size ?? 0);
    }
  } finally {
    bar?.end();
  }
}

/** Reads until more than `limit` bytes are there, or the end. `rest` is null at the end. */
export async function readStart(
  parts: AsyncIterable<Uint8Array>,
  limit: number,
): Promise<{ readonly start: Buffer; readonly rest: AsyncIterator<Uint8Array> | null }> {
  const rest = parts[Symbol.asyncIterator]();
  let start: Buffer = Buffer.alloc(0);
  for (let next = await rest.next(); !next.done; next = await rest.next()) {
    start = Buffer.concat([start, next.value]);
    if (start.length > limit) return { start, rest };
  }
  return { start, rest: null };
}

/** The start again, and what follows. */
export async function* continued(start: Buffer, rest: AsyncIterator<Uint8Array> | null): AsyncGenerator<Uint8Array> {
  yield start;
  if (rest === null) return;
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
}

export type SigningFlags = Pick<SignOptions, "hash" | "marshaling"> & {
  readonly padding?: NonNullable<SignOptions["signatureAlgorithm"]>;
};

export function withSigning(command: Command): Command {
  const hash = new Option("--hash <name>", "hash function for ECDSA and RSA; default: sha2-256");
  const marshaling = new Option("--marshaling <form>", "form of an ECDSA signature; default: asn1");
  const padding = new Option("--padding <name>", "padding of an RSA signature; default: pss");
  return command
    .addOption(hash.choices(["sha2-256", "sha2-384", "sha2-512"]))
    .addOption(marshaling.choices(["asn1", "jws"]))
    .addOption(padding.choices(["pss", "pkcs1v15"]));
}

/** The longest message that Ed25519 signs here: it hashes the message itself, and so needs all of it. */
const ed25519Bytes = 1024 * 1024;

/**
 * Returns what is sent of a message, and how: its digest, or with Ed25519 the message itself.
 * @throws CommandFailure usage, for a message that is too long
 */
export async function messageToSign(
  io: Io,
  client: StrongroomClient,
  name: string,
  input: Input,
  { hash, marshaling, padding }: SigningFlags,
): Promise<{ readonly message: Buffer; readonly options: SignOptions }> {
  const { type } = await client.showTransitKey(name);
  if (type === "ed25519") return { message: await wholeMessage(name, input), options: {} };
  const digest = createHash((hash ?? "sha2-256").replace("sha2-", "sha"));
  for await (const part of withProgress(io, "hashing", input)) digest.update(part);
  const options = { hash, marshaling, signatureAlgorithm: padding, prehashed: true };
  return { message: digest.digest(), options };
}

async function wholeMessage(name: string, { parts }: Input): Promise<Buffer> {
  const { start, rest } = await readStart(parts, ed25519Bytes);
  if (rest === null) return start;
  const limit = `${printable(name)} is an Ed25519 key, which signs at most ${ed25519Bytes} bytes here`;
  throw new CommandFailure("usage", `${limit}: sign a digest of the file, or use an ECDSA or RSA key`);
}

/** The longest plaintext that is sent to the server itself; a longer one is encrypted here, with a data key. */
export function inlineBytes(type: TransitKeyType): number {
  if (type === "rsa-2048") return 190;
  return type === "rsa-4096" ? 446 : 64 * 1024;
}
