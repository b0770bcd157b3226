/** `strongroom verify`: whether a signature of `strongroom sign` is right. */
import type { Command } from "commander";
import { nonEmpty } from "../kit/args/args.js";
import { mustBePath } from "../kit/args/paths.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { messageToSign, openInput, type SigningFlags, withSigning } from "../kit/connection/transit.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { type OutputFlags, printable, report, withOutput } from "../kit/output.js";
import { readInputFile } from "../kit/prompts/input.js";

type Flags = OutputFlags & ConnectionFlags & SigningFlags & { readonly signature: string };

export function define(command: Command, io: Io): void {
  command
    .description("Checks a signature of standard input, or of a file; exits with 12 when it is wrong.")
    .argument("<name>", "the key's name")
    .argument("[file]", "the signed file; default: standard input")
    .requiredOption("--signature <file>", "the file that holds the signature", nonEmpty);
  withOutput(withConnection(withSigning(command))).action((name, file, flags) => verify(io, name, file, flags));
}

async function verify(io: Io, name: string, file: string | undefined, flags: Flags): Promise<void> {
  const key = mustBePath(name);
  const signature = (await readInputFile(flags.signature, printable(flags.signature))).toString("latin1").trim();
  const input = await openInput(io, file);
  const isValid = await withClient(io, flags, async (client) => {
    const { message, options } = await messageToSign(io, client, key, input, flags);
    return client.verify(key, message, signature, options);
  });
  if (!isValid) throw new CommandFailure("findings", `the signature is wrong: ${key} did not sign this`);
  report(io, flags, { name: key, valid: true }, `the signature is right: signed with ${key}`);
}
