/** `strongroom get`: prints values, secrets as JSON, or copies a value to the clipboard. */
import type { Command } from "commander";
import type { Secret } from "../../client/client.js";
import { EarlierOption, nonEmpty } from "../kit/args/args.js";
import { secretField, secretText } from "../kit/args/fields.js";
import { mustBePath } from "../kit/args/paths.js";
import { fetchSecrets, mustGet, mustGetVersion, versionNumber, versionOption } from "../kit/connection/secrets.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { type ClipboardFlags, copyAndClear, mustFindClipboard, withClipboard } from "../kit/output/clipboard.js";
import { checkTarget, type OutputFileFlags, withNewFile, writeOut } from "../kit/output/output-file.js";
import { counted, printable, printJson, printValue, report, withResult } from "../kit/output.js";

type Flags = OutputFileFlags & ConnectionFlags & ClipboardFlags & { readonly at?: number; readonly field?: string };

const details = `
With --field, the value must be a JSON object: user.name is the member name of
its member user. -o writes the value byte for byte, also a binary one, which is
not printed on a terminal.

The values of several secrets are printed one per line, in the order of the
paths; multi-line values are refused. With --json, they are listed in the
object's member secrets. If one is missing, none is printed.`;

export function define(command: Command, io: Io): void {
  command
    .description("Prints a secret's value and nothing else; adds a newline only on a terminal.")
    .argument("<path...>", "the secret's path, or several")
    .option("--field <name>", "a field of the value, which is a JSON object", nonEmpty)
    .addOption(versionOption("--at <version>", "an earlier version, as history lists it"))
    .addOption(new EarlierOption("--version <number>", "at").argParser(versionNumber));
  withResult(withConnection(withClipboard(withNewFile(command))))
    .addHelpText("after", details)
    .action((given, flags) => get(io, given, flags));
}

async function get(io: Io, given: readonly string[], flags: Flags): Promise<void> {
  const [path = "", ...others] = given;
  return others.length === 0 ? getOne(io, path, flags) : getSeveral(io, given, flags);
}

async function getOne(io: Io, path: string, flags: Flags): Promise<void> {
  const clipboard = flags.copy ? mustFindClipboard(io) : null;
  const wanted = mustBePath(path);
  const { at: version } = flags;
  await checkTarget(flags);
  const secret = await withClient(io, flags, (client) => {
    return version === undefined ? mustGet(client, wanted) : mustGetVersion(client, wanted, version);
  });
  const value = Buffer.from(outputBytes(io, secret, flags));
  if (clipboard !== null) {
    const seconds = await copyAndClear(io, clipboard, value, flags);
    const text = `${secret.path} is in the clipboard${seconds === 0 ? "" : ` for ${seconds} s`}`;
    return report(io, flags, { path: secret.path, copied: true, clearedAfterSeconds: seconds }, text);
  }
  if (flags.output !== undefined) {
    await writeOut(io, [value], flags);
    const text = `${secret.path} written to ${flags.output} (${counted(value.length, "byte")})`;
    return report(io, flags, { path: secret.path, file: flags.output, bytes: value.length }, text);
  }
  if (flags.json) printJson(io, asJson(secret, flags));
  else printValue(io, value);
}

/** @throws CommandFailure usage, for a binary value where only text can be; notFound, without the field */
function outputBytes(io: Io, secret: Secret, { field, copy, json, output }: Flags): Uint8Array {
  if (field !== undefined) return Buffer.from(secretField(secret, field));
  const needsText = copy || (output === undefined && !json && io.stdout.isTTY);
  return needsText ? Buffer.from(secretText(secret)) : secret.revealBytes();
}

async function getSeveral(io: Io, given: readonly string[], flags: Flags): Promise<void> {
  for (const flag of ["copy", "at", "field", "output"] as const) {
    if (flags[flag] !== undefined) throw new CommandFailure("usage", `--${flag} takes one path: give only one`);
  }
  const paths = given.map(mustBePath);
  const found = await withClient(io, flags, (client) => fetchSecrets(client, paths));
  const secrets = paths.flatMap((path) => found.get(path) ?? []);
  if (flags.json) return printJson(io, { secrets: secrets.map((secret) => asJson(secret)) });
  const broken = secrets.filter((secret) => /[\r\n]/.test(secretText(secret))).map(({ path }) => printable(path));
  if (broken.length > 0) {
    const problem = `${broken.join(", ")}: cannot print multi-line values together`;
    throw new CommandFailure("usage", `${problem}: use --json, or get each alone`);
  }
  printValue(io, Buffer.from(secrets.map((secret) => `${secret.reveal()}\n`).join("")));
}

function asJson(secret: Secret, { field }: Pick<Flags, "field"> = {}): object {
  if (field !== undefined) return { path: secret.path, field, value: secretField(secret, field) };
  return { ...secret.toJSON(), value: secret.reveal() };
}
