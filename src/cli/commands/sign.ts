/** `strongroom sign`: a signature of standard input, or a file, by a transit key. */
import type { Command } from "commander";
import { mustBePath } from "../kit/args/paths.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { messageToSign, openInput, type SigningFlags, withSigning } from "../kit/connection/transit.js";
import type { Io } from "../kit/io.js";
import { type OutputFlags, printJson, printLine, withResult } from "../kit/output.js";

type Flags = OutputFlags & ConnectionFlags & SigningFlags;

const details = `
With an ECDSA or RSA key the input is hashed here, whatever its length, and only
its digest is sent. Ed25519 signs at most 1 MiB. The signature is printed as one
line, vault:v1: and base64, as strongroom verify takes it.`;

export function define(command: Command, io: Io): void {
  command
    .description("Signs standard input, or a file, with a transit key.")
    .argument("<name>", "the key's name")
    .argument("[file]", "the file to sign; default: standard input")
    .addHelpText("after", details);
  withResult(withConnection(withSigning(command))).action((name, file, flags) => sign(io, name, file, flags));
}

async function sign(io: Io, name: string, file: string | undefined, flags: Flags): Promise<void> {
  const key = mustBePath(name);
  const input = await openInput(io, file);
  const signature = await withClient(io, flags, async (client) => {
    const { message, options } = await messageToSign(io, client, key, input, flags);
    return client.sign(key, message, options);
  });
  if (flags.json) printJson(io, { name: key, signature });
  else printLine(io, signature);
}
