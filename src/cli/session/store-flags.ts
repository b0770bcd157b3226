/** Flags of maintenance commands for a vault in a database. */
import type { Command } from "commander";
import { readOneSetting } from "../../config/settings.js";
import { nonEmpty } from "./flags.js";

/** The values of the flags of `withStore`. */
export type StoreFlags = { readonly store?: string; readonly storePasswordFile?: string };

export function withStore(command: Command): Command {
  return command
    .option("--store <url>", "the vault's database (STRONGROOM_STORE; files in the home)", nonEmpty)
    .option("--store-password-file <file>", "file that holds the database's password", nonEmpty);
}

/** `store` is null for files in the home. @throws StartError, exit code 2 */
export function storeSettings({ store, storePasswordFile }: StoreFlags) {
  return {
    store: readOneSetting("store", store, process.env),
    storePasswordFile: readOneSetting("storePasswordFile", storePasswordFile, process.env),
  };
}
