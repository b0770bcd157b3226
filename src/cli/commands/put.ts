/** `strongroom put`: the value, its metadata, and what happens to an existing secret. */
import { type Command, Option } from "commander";
import {
  type MetadataChange,
  type PutOptions,
  type SecretType,
  type Stored,
  type StrongroomClient,
  StrongroomError,
} from "../../client/client.js";
import type { Clock } from "../../clock.js";
import { duration, Problem } from "../../config/readers.js";
import { secretTypes } from "../../contract/names.js";
import { canonical } from "../kit/args/paths.js";
import { creating, refuseOverwriting } from "../kit/connection/changes.js";
import { lookAt } from "../kit/connection/secrets.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { refuseTooLarge } from "../kit/connection/server-limits.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { counted, type OutputFlags, report, withDryRun, withOutput } from "../kit/output.js";
import { readValue, type Value, type ValueSource, withValue } from "../kit/prompts/value.js";

export type MetadataFlags = {
  readonly type?: SecretType;
  readonly description?: string;
  readonly expires?: Date | "never";
};

type Flags = OutputFlags &
  ConnectionFlags &
  MetadataFlags &
  ValueSource & { readonly dryRun?: true; readonly clobber: boolean; readonly keep: boolean };

const details = `
The value is typed or pasted at a hidden prompt, or read from a pipe or a file.
It is never an argument, which other users of this machine could read. Several
lines can be pasted where the terminal marks pastes, as most do; --multiline
takes them from any terminal, up to Ctrl-D:
  strongroom put tls/key --multiline
A file that is not UTF-8 text is stored byte for byte: get -o writes it again.
  strongroom put tls/key --from-file key.pem`;

export function define(command: Command, io: Io): void {
  command
    .description("Stores a secret. An existing one is replaced and keeps its metadata.")
    .argument("<path>", "the secret's path, such as app/db/password")
    .argument("[-]", "a dash reads the value from standard input")
    .option("--no-clobber", "fail if the secret exists")
    .option("--no-keep", "drop the old metadata unless given again");
  withOutput(withConnection(withDryRun(withMetadata(withValue(command), io))))
    .addHelpText("after", details)
    .action((path, dash, flags) => put(io, path, dash, flags));
}

export function withMetadata(command: Command, io: Io): Command {
  return command
    .addOption(new Option("--type <type>", "kind of secret").choices(secretTypes))
    .option("--description <text>", "what it is for; anyone who may list the vault can read it")
    .addOption(expiresOption(io));
}

async function put(io: Io, path: string, dash: string | undefined, flags: Flags): Promise<void> {
  refuseAssignment(path);
  const source = dash === undefined ? flags : { ...flags, fromFile: standardInput(dash, flags) };
  const existing = await withClient(io, flags, (client) => lookAt(client, path));
  if (existing !== null && !flags.clobber) refuseOverwriting(path, noClobber);
  const value = await readValue(io, source, `Value of ${path}`);
  try {
    if (flags.dryRun) {
      await withClient(io, flags, (client) => refuseTooLarge(client, sentBytes(value), flags.description));
      return reportPlan(io, path, existing !== null, flags);
    }
    const options = { ...given(flags), replaceMetadata: !flags.keep, ifAbsent: !flags.clobber };
    const stored = await withClient(io, flags, (client) => store(client, path, value, options));
    const { bytes, metadata } = stored;
    const replaced = existing !== null || stored.version > 1; // the same value again makes no new version
    const text = `${stored.path} ${replaced ? "replaced" : "stored"} (${counted(bytes, "byte")})`;
    report(io, flags, { path: stored.path, bytes, replaced, metadata }, text);
  } finally {
    value.bytes.fill(0);
  }
}

/** Bytes of the value in a request, which the server's limit is for. */
function sentBytes({ bytes, isBinary }: Value): number {
  return isBinary ? 4 * Math.ceil(bytes.length / 3) : bytes.length;
}

/** The form of other programs: the value is in the shell's history by now, and would become a part of the path. */
function refuseAssignment(path: string): void {
  if (!/^[A-Za-z_]\w*=/.test(path)) return;
  const ways = "type it at the prompt, pipe it in, or use --from-file";
  throw new CommandFailure(
    "usage",
    `NAME=value is no path, and other users could read a value among the arguments: ${ways}`,
  );
}

const noClobber = "--no-clobber forbids replacing it";

/** Asks for the limits only after a refusal: they cost a request. */
async function store(client: StrongroomClient, path: string, value: Value, options: PutOptions): Promise<Stored> {
  const { bytes, isBinary } = value;
  const put = () => (isBinary ? client.putBytes(path, bytes, options) : client.put(path, bytes, options));
  try {
    return await creating(path, noClobber, put);
  } catch (error) {
    const refused = error instanceof StrongroomError && error.code === "BAD_REQUEST";
    if (refused) await refuseTooLarge(client, sentBytes(value), options.description ?? undefined);
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
export function given({ type, description, expires }: MetadataFlags): MetadataChange {
  return {
    ...(type && { type }),
    ...(description !== undefined && { description: description || null }),
    ...(expires !== undefined && { expiresAt: expires === "never" ? null : expires }),
  };
}

/** The flag of a time of expiry. */
export function expiresOption({ clock }: Io): Option {
  const meaning = "remind of a new value after a duration such as 90d, on a date such as 2027-01-31, or never";
  return new Option("--expires <when>", meaning).argParser((text: string) => readExpiry(clock, text));
}

const mostDays = 36_500;
const lifetime = duration(mostDays * 86_400_000);

function readExpiry(clock: Clock, text: string): Date | "never" {
  if (text === "never") return text; // not null, which commander takes for a missing value
  const date = /^\d{4}-\d{2}-\d{2}/.test(text) ? new Date(text) : dateAfter(clock, text);
  if (date !== null && !Number.isNaN(date.getTime())) return date;
  throw new Problem("a duration such as 90d, a date such as 2027-01-31, or never");
}

function dateAfter(clock: Clock, text: string): Date | null {
  try {
    return new Date(clock.now() + lifetime(text));
  } catch {
    return null; // the duration's own message does not mention dates
  }
}

function reportPlan(io: Io, path: string, replaces: boolean, flags: Flags): void {
  const plan = { dryRun: true, path: canonical(path), replaced: replaces };
  report(io, flags, plan, `${path} would be ${replaces ? "replaced" : "stored"}: nothing was done`);
}
