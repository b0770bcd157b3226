/** Owns `strongroom put`: what is stored with the value, and what is replaced. */
import { type Command, Option } from "commander";
import type { PutOptions } from "../../client/client.js";
import { readValue, type ValueSource, withValue } from "../prompt/value.js";
import { type ConnectionFlags, withClient, withConnection } from "../session/connection.js";
import { CommandFailure } from "../session/exit-codes.js";
import { type OutputFlags, report, withDryRun, withOutput } from "../session/output.js";
import { canonical, lookAt, refuseOverwriting, secretTypes } from "../session/secret-arguments.js";
import { refuseTooLarge } from "../session/server-limits.js";

export type MetadataFlags = Pick<PutOptions, "type" | "description">;

type Flags = OutputFlags &
  ConnectionFlags &
  MetadataFlags &
  ValueSource & { readonly dryRun?: true; readonly clobber: boolean; readonly keep: boolean };

const details = `
The value is typed without being shown, or comes from a pipe or a file; never
from an argument, which others on this machine could read. What has several
lines comes from a pipe or a file:
  strongroom put tls/key --from-file key.pem
`;

export function define(command: Command): void {
  command
    .description("Stores a secret. One that is there already is replaced, and keeps its type and description.")
    .argument("<path>", "the secret's path, such as app/db/password")
    .argument("[-]", "a dash reads the value from standard input")
    .option("--no-clobber", "replace nothing: a secret that is there is an error")
    .option("--no-keep", "without --type or --description, leave them out instead of keeping the old ones");
  withOutput(withConnection(withDryRun(withMetadata(withValue(command)))))
    .addHelpText("after", details)
    .action(put);
}

/** Gives a command the flags for what is stored with a value. */
export function withMetadata(command: Command): Command {
  return command
    .addOption(new Option("--type <type>", "what kind of secret it is").choices(secretTypes))
    .option("--description <text>", "what it is for; whoever may list the vault can read it");
}

async function put(path: string, dash: string | undefined, flags: Flags): Promise<void> {
  const source = dash === undefined ? flags : { ...flags, fromFile: standardInput(dash, flags) };
  const replaced = await withClient(flags, (client) => lookAt(client, path));
  if (replaced !== null && !flags.clobber) refuseOverwriting(path, "--no-clobber forbids to replace it");
  const value = await readValue(source, `Value of ${path}: `);
  try {
    if (flags.dryRun) {
      await withClient(flags, (client) => refuseTooLarge(client, value.length, flags.description));
      return tellPlan(path, replaced !== null, flags);
    }
    const metadata = { ...(flags.keep && replaced), ...given(flags) };
    const stored = await withClient(flags, (client) => client.put(path, value, metadata));
    const done = { path: stored.path, bytes: stored.bytes, replaced: replaced !== null, metadata: stored.metadata };
    report(flags, done, `${stored.path} ${replaced === null ? "stored" : "replaced"} (${stored.bytes} bytes)`);
  } finally {
    value.fill(0);
  }
}

function standardInput(dash: string, { fromFile }: Flags): string {
  if (dash === "-" && (fromFile === undefined || fromFile === "-")) return "-";
  if (dash === "-") throw new CommandFailure("usage", "the value comes from standard input or from a file, not both");
  const ways = "type it when you are asked, pipe it in, or use --from-file";
  throw new CommandFailure("usage", `a value is not taken from the arguments, which others could read: ${ways}`);
}

/** Only what was given. An empty description is none. */
export function given({ type, description }: MetadataFlags): MetadataFlags {
  return { ...(type && { type }), ...(description !== undefined && { description: description || undefined }) };
}

function tellPlan(path: string, replaces: boolean, flags: Flags): void {
  const plan = { dryRun: true, path: canonical(path), replaced: replaces };
  report(flags, plan, `${path} would be ${replaces ? "replaced" : "stored"}: nothing was done`);
}
