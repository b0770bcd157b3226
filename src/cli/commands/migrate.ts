/** `strongroom migrate`: opens the two vaults, and says what was copied and what to do next. */
import { type Command, Option } from "commander";
import type { Bytes } from "../../../workers/protocol.js";
import { isStoreUrl } from "../../config/readers.js";
import { readOneSetting } from "../../config/settings.js";
import { refuseServed } from "../../engines/engine.js";
import { engineFor, readPlace } from "../../engines/engines.js";
import { VaultError } from "../../errors.js";
import { quoted } from "../../files/home.js";
import { type Migrated, MigrationError, type MigrationProblem, migrate } from "../../maintenance/migrate.js";
import { Keys } from "../../maintenance/offline-keys.js";
import type { SecretStore } from "../../storage/secret-store.js";
import { CommandFailure, type ExitName, failureOfVault } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { breakable, phasedBar } from "../kit/output/progress.js";
import { counted, type OutputFlags, printable, printJson, withOutput } from "../kit/output.js";

type Flags = OutputFlags & { readonly from: string; readonly to: string; readonly storePasswordFile?: string };

const details = `
A place is a home directory, or a database as postgres://USER@HOST/DATABASE. The
password comes from --store-password-file, PGPASSFILE or ~/.pgpass.`;

export function define(command: Command, io: Io): void {
  const place = (name: string, meaning: string) =>
    new Option(`--${name} <place>`, meaning).argParser(readPlace).makeOptionMandatory();
  command
    .description(
      "Copies a vault, with client tokens and history, between a home's files and a PostgreSQL database. Nothing is " +
        "decrypted, so no passphrase is needed. Every secret is read back and compared before the copy can be used. No " +
        "server may run on either place. An interrupted migration resumes when the command is run again.",
    )
    .addOption(place("from", "the vault to copy; it is left as it is"))
    .addOption(place("to", "an empty home or an empty database"))
    .option("--store-password-file <file>", "file that holds the database's password")
    .addHelpText("after", details);
  withOutput(command).action((flags) => migrateVault(io, flags));
}

async function migrateVault(io: Io, flags: Flags): Promise<void> {
  const { from, to } = flags;
  if (from === to) throw new CommandFailure("usage", "--from and --to are the same place");
  io.umask(0o077);
  const migrated = await copy(io, flags);
  if (flags.json) printJson(io, { ok: true, from, to, ...migrated });
  else if (!flags.quiet) io.stdout.write(textFor(migrated, flags));
}

/** @throws CommandFailure */
async function copy(io: Io, { from, to, storePasswordFile }: Flags): Promise<Migrated> {
  const passwordFile = readOneSetting("storePasswordFile", storePasswordFile, io.env);
  const keys = new Keys(null);
  const bar = phasedBar(io, () => "items");
  const opened: SecretStore[] = [];
  try {
    const source = await (await engineFor(from)).openUnserved(from, passwordFile, { creates: false });
    if (source === null) throw nothingIn(from);
    opened.push(source);
    if ((await source.header()) === null) throw nothingIn(from); // before anything is created
    const target = await (await engineFor(to)).openUnserved(to, passwordFile, { creates: true });
    if (target === null) throw nothingIn(to);
    opened.push(target);
    const checks = { isUsable: (header: Bytes) => keys.understands(header), refuseServed };
    return await breakable(io, (signal) => migrate(source, target, checks, { tick: bar.show, signal }));
  } catch (error) {
    throw migrationFailure(error);
  } finally {
    bar.end();
    await keys.stop();
    for (const store of opened) await store.close();
  }
}

function nothingIn(place: string): MigrationError {
  return new MigrationError("uninitialized", `there is no vault in ${place}: nothing to migrate`);
}

const problems: Readonly<Record<MigrationProblem, ExitName>> = {
  exists: "conflict",
  uninitialized: "notInitialized",
  damaged: "findings",
  changed: "unexpected",
  aborted: "aborted",
};

function migrationFailure(error: unknown): unknown {
  if (error instanceof MigrationError) return new CommandFailure(problems[error.problem], error.message);
  return error instanceof VaultError ? failureOfVault(error) : error;
}

function textFor({ secrets, copied }: Migrated, { from, to, storePasswordFile }: Flags): string {
  const done = `${counted(secrets, "secret")} of ${from} in ${to}, ${copied} copied now; all were compared`;
  const password = storePasswordFile === undefined ? "" : ` --store-password-file ${quoted(storePasswordFile)}`;
  const server = isStoreUrl(to) ? `--store ${quoted(to)}${password}` : `--home ${quoted(to)}`;
  const next = [
    `start the server with  strongroom serve ${server}  and unlock it with the same passphrase`,
    `the vault in ${from} is unchanged: remove it once you no longer need it, and never serve both`,
  ];
  return [done, ...next.map((step) => `next: ${step}`)].map((line) => `${printable(line)}\n`).join("");
}
