/** `strongroom describe`: what is stored with a value, shown or changed. */
import { type Command, Option } from "commander";
import type { Metadata, MetadataChange, SecretEntry, StrongroomClient } from "../../client/client.js";
import { secretTypes } from "../../contract/names.js";
import { mustBePath } from "../kit/args/paths.js";
import { lookAt, noSecretsAt } from "../kit/connection/secrets.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import {
  localDate,
  localMinute,
  type OutputFlags,
  printable,
  printJson,
  printRows,
  report,
  withOutput,
} from "../kit/output.js";
import { expiresOption, given, type MetadataFlags } from "./put.js";

type Flags = OutputFlags &
  ConnectionFlags &
  Omit<MetadataFlags, "type"> & { readonly type?: MetadataFlags["type"] | "none" };

const details = `
The value stays as it is, and need not be given again. An empty description,
--type none and --expires never remove what is stored. Without a flag, this
shows what is stored with the value.`;

export function define(command: Command, io: Io): void {
  command
    .description("Shows or changes a secret's type, description and expiry.")
    .argument("<path>", "the secret's path")
    .addOption(new Option("--type <type>", "kind of secret; none removes it").choices([...secretTypes, "none"]))
    .option("--description <text>", "what it is for; anyone who may list the vault can read it")
    .addOption(expiresOption(io));
  withOutput(withConnection(command))
    .addHelpText("after", details)
    .action((path, flags) => describe(io, path, flags));
}

async function describe(io: Io, path: string, { type, ...flags }: Flags): Promise<void> {
  const wanted = mustBePath(path);
  const change: MetadataChange =
    type === "none" ? { ...given(flags), type: null } : given({ ...flags, ...(type && { type }) });
  if (Object.keys(change).length === 0) {
    const entry = await withClient(io, flags, (client) => mustLookAt(client, wanted));
    if (flags.json) return printJson(io, entry);
    printRows(io, formatEntry(entry));
    return;
  }
  const {
    path: stored,
    metadata,
    version,
  } = await withClient(io, flags, async (client) => {
    await mustLookAt(client, wanted);
    return client.changeMetadata(wanted, change);
  });
  report(io, flags, { path: stored, metadata, version }, `${stored} changed: ${inWords(metadata)}`);
}

/** @throws CommandFailure notFound, with a suggestion; findings */
async function mustLookAt(client: StrongroomClient, path: string): Promise<SecretEntry> {
  const found = await lookAt(client, path);
  if (found === null) throw await noSecretsAt(client, [path]);
  if (found.entry !== undefined) return found.entry;
  throw new CommandFailure("findings", `${printable(path)} is damaged; see  strongroom doctor`);
}

function formatEntry({ path, encoding, metadata, createdAt, updatedAt, version }: SecretEntry): string {
  const { type = "-", description = "-", expiresAt, custom = {} } = metadata;
  const rows = [
    ["type", type],
    ["description", description],
    ["expires", expiresAt === undefined ? "never" : localDate(new Date(expiresAt))],
    ["value", encoding === undefined ? "text" : "binary"],
    ["version", String(version)],
    ["created", localMinute(new Date(createdAt))],
    ["changed", localMinute(new Date(updatedAt))],
    ...Object.entries(custom).map(([name, text]) => ["custom", `${name}: ${text}`] as const),
  ] as const;
  return `${printable(path)}\n${rows.map(([name, text]) => `  ${name.padEnd(11)}  ${printable(text)}\n`).join("")}`;
}

function inWords({ type, description, expiresAt }: Metadata): string {
  const expiry = expiresAt === undefined ? "never expires" : `expires ${localDate(new Date(expiresAt))}`;
  return [type ?? "no type", description ?? "no description", expiry].join(", ");
}
