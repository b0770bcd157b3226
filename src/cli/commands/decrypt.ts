/** `strongroom decrypt`: what `strongroom encrypt` made, or any ciphertext of a transit key. */
import type { Command } from "commander";
import type { StrongroomClient } from "../../client/client.js";
import { mustBePath } from "../kit/args/paths.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { continued, type Input, openInput, readStart, withProgress } from "../kit/connection/transit.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { checkOutput, type OutputFileFlags, withOutputFile, writeOut } from "../kit/output/output-file.js";
import { DamagedFile, magic, openStream, readHead } from "../kit/output/sealed-stream.js";
import { report } from "../kit/output.js";

type Flags = OutputFileFlags & ConnectionFlags & { readonly aad?: string };

/** The longest ciphertext that is sent to the server: the server's own limit may be lower. */
const inlineTextBytes = 16 * 1024 * 1024;

export function define(command: Command, io: Io): void {
  command
    .description("Decrypts standard input, or a file, with a transit key.")
    .argument("<name>", "the key's name")
    .argument("[file]", "the file to decrypt; default: standard input")
    .option("--aad <text>", "the additional data that was given to encrypt");
  withConnection(withOutputFile(command)).action((name, file, flags) => decrypt(io, name, file, flags));
}

async function decrypt(io: Io, name: string, file: string | undefined, flags: Flags): Promise<void> {
  const key = mustBePath(name);
  await checkOutput(flags);
  const input = await openInput(io, file);
  await withClient(io, flags, (client) => writeOut(io, decrypted(io, client, key, input, flags.aad), flags));
  if (flags.output !== undefined) report(io, flags, { name: key, file: flags.output }, `decrypted with ${key}`);
}

async function* decrypted(
  io: Io,
  client: StrongroomClient,
  name: string,
  input: Input,
  aad: string | undefined,
): AsyncGenerator<Uint8Array> {
  const { start, rest } = await readStart(withProgress(io, "decrypting", input), magic.length);
  const all = continued(start, rest);
  if (start.toString("latin1", 0, magic.length) === magic) yield* decryptedFile(client, name, all, aad);
  else yield await client.decrypt(name, await ciphertextIn(all), { aad });
}

async function* decryptedFile(
  client: StrongroomClient,
  name: string,
  file: AsyncIterable<Uint8Array>,
  aad: string | undefined,
): AsyncGenerator<Uint8Array> {
  try {
    const { wrappedKey, chunks } = await readHead(file);
    const key = await client.decrypt(name, wrappedKey, { aad });
    try {
      yield* openStream(key, wrappedKey, chunks);
    } finally {
      key.fill(0);
    }
  } catch (error) {
    if (error instanceof DamagedFile) throw new CommandFailure("findings", `${error.message}: get another copy`);
    throw error;
  }
}

async function ciphertextIn(parts: AsyncIterable<Uint8Array>): Promise<string> {
  const { start, rest } = await readStart(parts, inlineTextBytes);
  const text = start.toString("latin1").trim();
  if (rest === null && text.startsWith("vault:v")) return text;
  throw new CommandFailure(
    "usage",
    "the input is neither a ciphertext (vault:v1:...) nor a file of strongroom encrypt",
  );
}
