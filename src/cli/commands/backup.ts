/** `strongroom backup`: takes the snapshot, from the server or from the files, and prints the result. */
import { isAbsolute, relative, resolve, sep } from "node:path";
import type { Command } from "commander";
import { readOneSetting } from "../../config/settings.js";
import { takesNoFiles, VaultError } from "../../errors.js";
import { homeAt } from "../../files/home.js";
import { ownIdentity } from "../../files/process-identity.js";
import type { Phase, Watch } from "../../maintenance/backup/archive.js";
import { BackupError } from "../../maintenance/backup/format.js";
import { backUp, type Saved, type TakenSnapshot } from "../../maintenance/backup/write-backup.js";
import { Keys } from "../../maintenance/offline-keys.js";
import { findHolder } from "../../storage/files/claim.js";
import type { SecretStore, StoredSnapshot } from "../../storage/secret-store.js";
import { nonEmpty } from "../kit/args/args.js";
import { refuseStoreFlags, type StoreFlags, storeSettings, withStore } from "../kit/args/settings-flags.js";
import { type ConnectionFlags, namesServer, withConnection, withPatientClient } from "../kit/connection/server.js";
import { CommandFailure, type ExitName, failureOfVault } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { breakable, phasedBar } from "../kit/output/progress.js";
import { counted, type OutputFlags, printable, printJson, withOutput } from "../kit/output.js";

type Flags = OutputFlags & ConnectionFlags & StoreFlags & { readonly withAudit?: true };

export function define(command: Command, io: Io): void {
  command
    .description(
      "Writes a consistent snapshot of all sealed secrets and the vault's header into a new tar file. Its secrets are " +
        "ciphertext and open with the passphrase; the token and the certificate are not in it. The server may be running, " +
        "locked or not; if its disk is full or read-only, it refuses writes until the backup is done.",
    )
    .argument("<file>", "the file to create; an existing one is not overwritten", nonEmpty)
    .option("--with-audit", "also save the audit log");
  withOutput(withConnection(withStore(command))).action((file, flags) => backup(io, file, flags));
}

async function backup(io: Io, file: string, flags: Flags): Promise<void> {
  if (file === "-")
    throw new CommandFailure(
      "usage",
      "a backup is read back and verified, which standard output does not allow: name a file",
    );
  const home = readOneSetting("home", flags.home, io.env);
  const vaultPath = homeAt(home).vault;
  refuseInside(vaultPath, file);
  const served = namesServer(io, flags) || (await findHolder(vaultPath)) !== null;
  if (served) refuseStoreFlags(flags, "while a server runs on this home: leave it out, or choose another --home");
  const { store, storePasswordFile } = await storeSettings(io, home, flags);
  const unserved = () => snapshotOfPlace(home, store ?? home, storePasswordFile);
  const snapshot = served ? () => snapshotOfServer(io, flags) : unserved;
  const keys = new Keys(null);
  const work = watched(io, (watch) => backUp(snapshot, file, keys, watch, flags.withAudit));
  report(io, file, await work.finally(() => keys.stop()), flags);
}

/** @throws CommandFailure findings */
function report(io: Io, file: string, { secrets, damaged, direct }: Saved, flags: Flags): void {
  const how = direct ? " (from the vault itself: its disk is full or read-only, and takes no snapshot)" : "";
  const saved = `${counted(secrets, "secret")} saved in ${printable(file)}${how}`;
  if (flags.json) printJson(io, { ok: true, file, secrets, damaged, ...(direct && { direct }) });
  if (damaged > 0) {
    throw new CommandFailure(
      "findings",
      `${saved}, ${damaged} of them damaged, as they are: strongroom doctor lists them`,
    );
  }
  if (!flags.json && !flags.quiet) io.stdout.write(`${saved}\n`);
}

/** @throws CommandFailure usage */
function refuseInside(vaultPath: string, file: string): void {
  const way = relative(resolve(vaultPath), resolve(file));
  if (isAbsolute(way) || way.split(sep)[0] === "..") return;
  throw new CommandFailure("usage", "a backup inside the vault would be lost with it: name a file elsewhere");
}

function snapshotOfServer(io: Io, flags: Flags): Promise<TakenSnapshot> {
  return withPatientClient(io, flags, async (client) => {
    const { initialized, vaultPath } = await client.status();
    if (!initialized) throw noVault(vaultPath);
    const { pid, started } = ownIdentity();
    const taken = await client.snapshot({ reader: `${pid}:${started}` });
    return { ...taken, direct: taken.direct === true, release: async () => {} };
  });
}

/** Takes a snapshot without a server. The home is claimed until the snapshot is no longer needed. */
async function snapshotOfPlace(home: string, place: string, passwordFile: string | null): Promise<TakenSnapshot> {
  const { engineFor } = await import("../../engines/engines.js");
  const opened = await (await engineFor(place)).openClaimed(home, place, passwordFile);
  if (opened === null) throw noVault(homeAt(home).vault);
  const { store, close } = opened;
  try {
    if ((await store.header()) === null) throw noVault(store.vaultPath);
    const { directory, count, direct } = await snapshotOrFrozen(store);
    return { directory, secretCount: count, direct, release: close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function snapshotOrFrozen(store: SecretStore): Promise<StoredSnapshot & { readonly direct: boolean }> {
  try {
    return { ...(await store.snapshot()), direct: false };
  } catch (error) {
    if (!takesNoFiles(error)) throw error;
    return { ...(await store.freeze(ownIdentity())), direct: true };
  }
}

function noVault(vaultPath: string): BackupError {
  return new BackupError("uninitialized", `there is no vault in ${vaultPath}: nothing to save`);
}

const exits: Readonly<Record<BackupError["problem"], ExitName>> = {
  exists: "conflict",
  uninitialized: "notInitialized",
  damaged: "findings",
  unusable: "unexpected",
  aborted: "aborted",
};

/** Runs work with a progress bar, stops it on SIGINT or SIGTERM, and turns its errors into those of the command line. */
export async function watched<T>(io: Io, work: (watch: Watch) => Promise<T>): Promise<T> {
  const bar = phasedBar<Phase>(io, (phase) => (phase === "saving" ? "items" : "bytes"));
  try {
    return await breakable(io, (signal) => work({ tick: bar.show, signal }));
  } catch (error) {
    if (error instanceof BackupError) throw new CommandFailure(exits[error.problem], printable(error.message)); // an archive's names may be hostile
    throw error instanceof VaultError ? failureOfVault(error) : error;
  } finally {
    bar.end();
  }
}
