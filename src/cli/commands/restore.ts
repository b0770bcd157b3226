/** `strongroom restore`: finds the home, and prints the result. */
import { access, constants, rmdir, stat } from "node:fs/promises";
import type { Command } from "commander";
import { readOneSetting } from "../../config/settings.js";
import { engineFor } from "../../engines/engines.js";
import { StartError, systemCode } from "../../errors.js";
import { missingAsNull } from "../../files/durable.js";
import { failureReason } from "../../files/file-problem.js";
import { type Home, homeAt, openHome } from "../../files/home.js";
import {
  judge,
  judgeForStore,
  restoreIntoStore,
  restore as restoreVault,
} from "../../maintenance/backup/restore-backup.js";
import { type HeaderCheck, Keys } from "../../maintenance/offline-keys.js";
import type { SecretStore } from "../../storage/secret-store.js";
import { nonEmpty } from "../kit/args/args.js";
import { type StoreFlags, storeSettings, withStore } from "../kit/args/settings-flags.js";
import { withHome } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { counted, type OutputFlags, printable, printJson, withDryRun, withOutput } from "../kit/output.js";
import { watched } from "./backup.js";

type Flags = OutputFlags & StoreFlags & { readonly home?: string; readonly dryRun?: true };

export function define(command: Command, io: Io): void {
  command
    .description(
      "Restores a backup into a home or a database (--store) that has no vault; unlock it with the passphrase of the " +
        "time of the backup. A home that has a vault, or whose server runs, is left alone. All checksums are verified " +
        "first.",
    )
    .argument("<file>", "the tar file that strongroom backup created", nonEmpty);
  withDryRun(withOutput(withStore(withHome(command)))).action((file, flags) => restore(io, file, flags));
}

async function restore(io: Io, file: string, flags: Flags): Promise<void> {
  const path = readOneSetting("home", flags.home, io.env);
  const { store, storePasswordFile } = await storeSettings(io, path, flags);
  const creates = flags.dryRun !== true;
  await mustBeReadable(file); // before a home is created for it
  const keys = new Keys(null);
  const isUsable: HeaderCheck = (header) => keys.understands(header);
  try {
    const place = store ?? path;
    const engine = await engineFor(place);
    const opened = engine.database && (await engine.openUnserved(place, storePasswordFile, { creates }));
    const restored =
      opened === null
        ? await restoreFiles(io, file, path, isUsable, flags)
        : await restoreDatabase(io, file, opened, isUsable, flags);
    const { place: shown, ...facts } = restored;
    if (flags.json) printJson(io, { ok: true, dryRun: flags.dryRun === true, ...facts });
    else if (!flags.quiet) io.stdout.write(textFor(facts.secrets, shown, flags.dryRun === true));
  } finally {
    await keys.stop();
  }
}

type Restored = { readonly vaultPath: string; readonly secrets: number; readonly place: string };

async function restoreFiles(
  io: Io,
  file: string,
  home: string,
  isUsable: HeaderCheck,
  { dryRun }: Flags,
): Promise<Restored> {
  const isNew = (await missingAsNull(stat(home)).catch(() => "unusable")) === null;
  const opened = dryRun ? await plannedHome(home) : await openHome(home);
  const work = dryRun ? judge : restoreVault;
  try {
    const secrets = await watched(io, (watch) => work(file, opened.vault, isUsable, watch));
    return { vaultPath: opened.vault, secrets, place: home };
  } catch (error) {
    if (isNew && !dryRun) await removeEmpty(opened);
    throw error;
  }
}

/** Removes the directories of a home in which nothing is. */
async function removeEmpty({ vault, tls, path }: Home): Promise<void> {
  for (const directory of [vault, tls, path]) await rmdir(directory).catch(() => {}); // the first error is what matters
}

async function restoreDatabase(
  io: Io,
  file: string,
  store: SecretStore,
  isUsable: HeaderCheck,
  { dryRun }: Flags,
): Promise<Restored> {
  const { vaultPath } = store;
  const work = dryRun ? judgeForStore : restoreIntoStore;
  try {
    const secrets = await watched(io, (watch) => work(file, store, isUsable, watch));
    return { vaultPath, secrets, place: vaultPath };
  } finally {
    await store.close();
  }
}

/** @throws CommandFailure usage */
async function mustBeReadable(file: string): Promise<void> {
  try {
    await access(file, constants.R_OK);
    if (!(await stat(file)).isDirectory()) return;
  } catch (error) {
    throw unreadable(file, systemCode(error));
  }
  throw unreadable(file, "EISDIR");
}

function unreadable(file: string, code: string | undefined): CommandFailure {
  return new CommandFailure("usage", `the backup ${printable(file)} cannot be read${failureReason(code)}`);
}

/** Returns the home that a restore would create, and creates nothing. @throws StartError */
async function plannedHome(path: string): Promise<Home> {
  const found = await missingAsNull(stat(path)).catch(() => "unusable" as const);
  if (found === null || (found !== "unusable" && found.isDirectory())) return homeAt(path);
  throw new StartError(`${path} is not a directory: choose another home with --home`);
}

function textFor(secrets: number, home: string, dryRun: boolean): string {
  const what = counted(secrets, "secret");
  if (dryRun) return `${what} could be restored into ${printable(home)} (a dry run: nothing was written)\n`;
  return `${what} restored into ${printable(home)}: start the server there and unlock it\n`;
}
