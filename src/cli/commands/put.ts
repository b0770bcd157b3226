/** `strongroom put`: the value, its metadata, and what happens to an existing secret. */
import { type Command, Option } from "commander";
import type { Bytes } from "../../../workers/protocol.js";
import { type PutOptions, type Stored, type StrongroomClient, StrongroomError } from "../../client/client.js";
import { readValue, type ValueSource, withValue } from "../prompt/value.js";
import { type ConnectionFlags, withClient, withConnection } from "../session/connection.js";
import { CommandFailure } from "../session/exit-codes.js";
import { counted, type OutputFlags, report, withDryRun, withOutput } from "../session/output.js";
import { canonical, lookAt, refuseOverwriting, secretTypes } from "../session/secret-arguments.js";
import { refuseTooLarge } from "../session/server-limits.js";

export type MetadataFlags = Pick<PutOptions, "type" | "description">;

type Flags = OutputFlags &
  ConnectionFlags &
  MetadataFlags &
  ValueSource & { readonly dryRun?: true; readonly clobber: boolean; readonly keep: boolean };

const details = `
The value is typed or pasted at a hidden prompt, or read from a pipe or a file.
It is never an argument, which other users of this machine could read. Several
lines can be pasted where the terminal marks pastes, as most do; --multiline
takes them from any terminal, up to Ctrl-D:
  strongroom put tls/key --from-file key.pem
  strongroom put tls/key --multiline`;

export function define(command: Command): void {
  command
    .description("Stores a secret. An existing one is replaced and keeps its type and description.")
    .argument("<path>", "the secret's path, such as app/db/password")
    .argument("[-]", "a dash reads the value from standard input")
    .option("--no-clobber", "fail if the secret exists")
    .option("--no-keep", "drop the old type and description unless given anew");
  withOutput(withConnection(withDryRun(withMetadata(withValue(command)))))
    .addHelpText("after", details)
    .action(put);
}

/** Adds the flags for the metadata of a secret. */
export function withMetadata(command: Command): Command {
  return command
    .addOption(new Option("--type <type>", "kind of secret").choices(secretTypes))
    .option("--description <text>", "what it is for; anyone who may list the vault can read it");
}

async function put(path: string, dash: string | undefined, flags: Flags): Promise<void> {
  const source = dash === undefined ? flags : { ...flags, fromFile: standardInput(dash, flags) };
  const replaced = await withClient(flags, (client) => lookAt(client, path));
  if (replaced !== null && !flags.clobber) refuseOverwriting(path, "--no-clobber forbids replacing it");
  const value = await readValue(source, `Value of ${path}`);
  try {
    if (flags.dryRun) {
      await withClient(flags, (client) => refuseTooLarge(client, value.length, flags.description));
      return reportPlan(path, replaced !== null, flags);
    }
    const metadata = { ...(flags.keep && replaced), ...given(flags) };
    const stored = await withClient(flags, (client) => store(client, path, value, metadata));
    const done = { path: stored.path, bytes: stored.bytes, replaced: replaced !== null, metadata: stored.metadata };
    report(
      flags,
      done,
      `${stored.path} ${replaced === null ? "stored" : "replaced"} (${counted(stored.bytes, "byte")})`,
    );
  } finally {
    value.fill(0);
  }
}

/** Asks for the limits only after a refusal: they cost a request. */
async function store(client: StrongroomClient, path: string, value: Bytes, metadata: MetadataFlags): Promise<Stored> {
  try {
    return await client.put(path, value, metadata);
  } catch (error) {
    const refused = error instanceof StrongroomError && error.code === "BAD_REQUEST";
    if (refused) await refuseTooLarge(client, value.length, metadata.description);
    throw error;
  }
}

function standardInput(dash: string, { fromFile }: Flags): string {
  if (dash === "-" && (fromFile === undefined || fromFile === "-")) return "-";
  if (dash === "-") throw new CommandFailure("usage", "- and --from-file are two sources of the value: use only one");
  const ways = "type it at the prompt, pipe it in, or use --from-file";
  throw new CommandFailure("usage", `the value must not be an argument, which other users could read: ${ways}`);
}

/** Returns only what was given; an empty description removes it. */
export function given({ type, description }: MetadataFlags): MetadataFlags {
  return { ...(type && { type }), ...(description !== undefined && { description: description || undefined }) };
}

function reportPlan(path: string, replaces: boolean, flags: Flags): void {
  const plan = { dryRun: true, path: canonical(path), replaced: replaces };
  report(flags, plan, `${path} would be ${replaces ? "replaced" : "stored"}: nothing was done`);
}
