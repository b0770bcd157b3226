/** `strongroom key`: further ways into the vault. */
import { Argument, type Command, Option } from "commander";
import type { CreatedKey, Key } from "../../client/client.js";
import { integer } from "../../config/readers.js";
import { nonEmpty, onlyForActions } from "../kit/args/args.js";
import { createKey, keyAdvice } from "../kit/connection/create-key.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { checkTarget, writeOut } from "../kit/output/output-file.js";
import {
  displayWidth,
  localDate,
  type OutputFlags,
  padded,
  printable,
  printJson,
  printLine,
  printRows,
  report,
  say,
  withResult,
} from "../kit/output.js";
import { findKeyring } from "../kit/programs/keyring.js";
import { type PassphraseSource, withPassphrase } from "../kit/prompts/passphrase.js";
import { mustConfirm, withYes } from "../kit/prompts/prompt.js";
import { splitKey } from "../kit/prompts/shares.js";

type Flags = OutputFlags &
  ConnectionFlags &
  PassphraseSource & {
    readonly label?: string;
    readonly output?: string;
    readonly overwrite?: true;
    /** Earlier spelling of --overwrite, and of --yes. */
    readonly force?: true;
    readonly yes?: true;
    readonly keyring?: true;
    readonly shares?: number;
    readonly threshold?: number;
  };

const making = ["create", "split"];

const takenBy: { readonly [F in keyof Flags]?: readonly string[] } = {
  label: making,
  output: making,
  overwrite: making,
  force: [...making, "rm"],
  yes: ["rm"],
  keyring: ["create"],
  shares: ["split"],
  threshold: ["split"],
  passphraseFile: making,
  passphraseFd: making,
};

export function define(command: Command, io: Io): void {
  const count = integer(2, 255);
  command
    .description(
      "create makes a key that unlocks the vault as the passphrase does, and shows it once; split creates a key as Shamir " +
        "shares: any --threshold of them recover it; ls lists the keys, rm deletes one.",
    )
    .addArgument(new Argument("<action>", "what to do with keys").choices([...making, "ls", "rm"]))
    .argument("[key]", "for rm: the key's label or id")
    .option("--label <text>", "name of the new key; default: recovery", nonEmpty)
    .option("-o, --output <file>", "create: write the key to a new file, readable only by you (0600)", nonEmpty)
    .option("--overwrite", "create, split: replace the output file if it exists")
    .addOption(new Option("--force").hideHelp())
    .addOption(new Option("--keyring", "create: store the key in the desktop's keyring").conflicts("output"))
    .addOption(new Option("--shares <number>", "split: how many shares to make; default: 5").argParser(count))
    .addOption(
      new Option("--threshold <number>", "split: how many of them recover the key; default: 3").argParser(count),
    );
  onlyForActions(withResult(withConnection(withPassphrase(withYes(command)))), takenBy).action((action, name, flags) =>
    key(io, action, name, flags),
  );
}

async function key(io: Io, action: string, name: string | undefined, { force, ...given }: Flags): Promise<void> {
  const flags = force ? { ...given, overwrite: force, yes: force } : given;
  if ((action === "rm") !== (name !== undefined)) {
    const problem = action === "rm" ? "rm needs the key's label or id" : `${action} takes no key`;
    throw new CommandFailure("usage", `${problem}: strongroom key ls  lists the keys`);
  }
  if (action === "create") return flags.keyring ? createInKeyring(io, flags) : create(io, flags);
  if (action === "split") return split(io, flags);
  return action === "ls" ? list(io, flags) : remove(io, name ?? "", flags);
}

async function create(io: Io, flags: Flags): Promise<void> {
  await checkTarget(flags);
  await createKey(io, flags, flags.label ?? "recovery", async (created) => {
    await show(io, created, [created.key], flags);
    if (!flags.json && !flags.quiet) say(io, keyAdvice);
  });
}

/** Prints the lines, or writes them to the output file. */
async function show(io: Io, { id, label, key }: CreatedKey, lines: readonly string[], flags: Flags): Promise<void> {
  if (flags.output !== undefined) {
    await writeOut(io, [`${lines.join("\n")}\n`], flags);
    report(io, flags, { id, label, output: flags.output }, `the key "${label}" is in ${flags.output}`);
  } else if (flags.json) printJson(io, { ok: true, id, label, ...(lines.length > 1 ? { shares: lines } : { key }) });
  else for (const line of lines) printLine(io, line);
}

async function createInKeyring(io: Io, flags: Flags): Promise<void> {
  const keyring = findKeyring(io);
  const { vaultPath } = await withClient(io, flags, (client) => client.status());
  const label = flags.label ?? `keyring of ${io.userName()} on ${io.hostName()}`;
  await createKey(io, flags, label, async ({ id, key }) => {
    await keyring.store(vaultPath, key);
    const text = `the key "${label}" is in the keyring: unlock with  strongroom unlock --keyring`;
    report(io, flags, { id, label }, text);
  });
}

async function split(io: Io, flags: Flags): Promise<void> {
  const { shares = 5, threshold = 3 } = flags;
  if (threshold > shares) throw new CommandFailure("usage", `${shares} shares cannot have a threshold of ${threshold}`);
  await checkTarget(flags);
  await createKey(io, flags, flags.label ?? "shares", async (created) => {
    await show(io, created, await splitKey(created.key, shares, threshold), flags);
    const text = `Any ${threshold} of these ${shares} shares unlock the vault:  strongroom unlock --shares\n`;
    if (!flags.json && !flags.quiet) say(io, text);
  });
}

async function list(io: Io, flags: Flags): Promise<void> {
  const found = await withClient(io, flags, (client) => client.keys());
  if (flags.json) return printJson(io, found);
  const labels = found.keys.map(({ label }) => printable(label));
  const width = Math.max(...labels.map((label) => displayWidth(label)));
  for (const [i, { id, createdAt }] of found.keys.entries()) {
    printRows(io, `${padded(labels[i] ?? "", width)}  ${localDate(new Date(createdAt))}  ${id}\n`);
  }
}

async function remove(io: Io, name: string, flags: Flags): Promise<void> {
  const { keys } = await withClient(io, flags, (client) => client.keys());
  const { id, label, kind } = mustFind(keys, name);
  const others = keys.filter((key) => key.id !== id).map((key) => `"${printable(key.label)}"`);
  const question =
    kind === "passphrase"
      ? `Delete the passphrase? Only ${others.join(", ")} will unlock the vault then, and be needed for a new passphrase.`
      : `Delete the key "${printable(label)}"?`;
  if (others.length > 0) await mustConfirm(io, question, flags); // the server refuses to delete the last one
  await withClient(io, flags, (client) => client.deleteKey(id));
  report(io, flags, { id, label }, `deleted key "${label}": it no longer unlocks the vault`);
}

function mustFind(keys: readonly Key[], name: string): Key {
  const found = keys.find(({ label }) => label === name) ?? keys.find(({ id }) => id === name);
  if (found !== undefined) return found;
  const labels = keys.map(({ label }) => `"${printable(label)}"`).join(", ");
  throw new CommandFailure("notFound", `no key named "${printable(name)}"; there are ${labels}`);
}
