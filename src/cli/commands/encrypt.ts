/** `strongroom encrypt`: short input by the server, longer input here with a data key that the server encrypts. */
import type { Command } from "commander";
import type { StrongroomClient } from "../../client/client.js";
import { mustBePath } from "../kit/args/paths.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { continued, type Input, inlineBytes, openInput, readStart, withProgress } from "../kit/connection/transit.js";
import type { Io } from "../kit/io.js";
import { checkOutput, type OutputFileFlags, withOutputFile, writeOut } from "../kit/output/output-file.js";
import { sealStream } from "../kit/output/sealed-stream.js";
import { report } from "../kit/output.js";

type Flags = OutputFileFlags & ConnectionFlags & { readonly aad?: string };

const details = `
Up to 64 KiB (190 or 446 bytes with an RSA key) is encrypted by the server and
printed as one line, vault:v1:... Anything longer is encrypted here in chunks,
with a new data key that the server makes and encrypts; docs/transit.md
describes the file. strongroom decrypt takes either.`;

export function define(command: Command, io: Io): void {
  command
    .description("Encrypts standard input, or a file, with a transit key.")
    .argument("<name>", "the key's name")
    .argument("[file]", "the file to encrypt; default: standard input")
    .option("--aad <text>", "additional data that decrypt must be given again; not with RSA keys")
    .addHelpText("after", details);
  withConnection(withOutputFile(command)).action((name, file, flags) => encrypt(io, name, file, flags));
}

async function encrypt(io: Io, name: string, file: string | undefined, flags: Flags): Promise<void> {
  const key = mustBePath(name);
  await checkOutput(flags);
  const input = await openInput(io, file);
  await withClient(io, flags, (client) => writeOut(io, encrypted(io, client, key, input, flags.aad), flags));
  if (flags.output !== undefined) report(io, flags, { name: key, file: flags.output }, `encrypted with ${key}`);
}

async function* encrypted(
  io: Io,
  client: StrongroomClient,
  name: string,
  input: Input,
  aad: string | undefined,
): AsyncGenerator<string | Uint8Array> {
  const { type } = await client.showTransitKey(name);
  const { start, rest } = await readStart(withProgress(io, "encrypting", input), inlineBytes(type));
  if (rest === null) {
    yield `${await client.encrypt(name, start, { aad })}\n`;
    return;
  }
  const { key, ciphertext } = await client.dataKey(name, { aad });
  try {
    yield* sealStream(key, ciphertext, continued(start, rest));
  } finally {
    key.fill(0);
  }
}
