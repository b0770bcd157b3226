/** `strongroom ls`. */
import { type Command, Option } from "commander";
import type { SecretEntry, StrongroomClient } from "../../client/client.js";
import { duration } from "../../config/readers.js";
import { folderPrefix } from "../kit/args/paths.js";
import { explainEmptyFolder, folderPages } from "../kit/connection/secrets.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { asPaths, asTree, type ListingFlags, printList, withListing } from "../kit/output/listing.js";
import { sayIfEmpty } from "../kit/output.js";

type Flags = ListingFlags & ConnectionFlags & { readonly expiring?: number };

export function define(command: Command, io: Io): void {
  const expiring = new Option("--expiring <duration>", "only what has expired, or expires within this time");
  command
    .description(
      "Lists the paths of secrets, never their values: as a tree on a terminal, otherwise one path per line.",
    )
    .argument("[folder]", "only what is in this folder")
    .addOption(expiring.argParser(duration(36_500 * 86_400_000)));
  withConnection(withListing(command)).action((folder, flags) => ls(io, folder, flags));
}

async function ls(io: Io, folder = "", flags: Flags): Promise<void> {
  await withClient(io, flags, async (client) => {
    if (flags.expiring !== undefined) return listExpiring(io, client, folder, flags.expiring, flags);
    const count = await printList(io, folderPages(client, folder), () => true, asTree, flags);
    if (count > 0) return;
    if (folderPrefix(folder) !== "") throw new CommandFailure("notFound", await explainEmptyFolder(client, folder));
    sayIfEmpty(io, count, await explainEmptyFolder(client, folder), flags);
  });
}

/** A table on a terminal: a path alone would not say when. */
async function listExpiring(
  io: Io,
  client: StrongroomClient,
  folder: string,
  withinMs: number,
  flags: Flags,
): Promise<void> {
  const limit = io.clock.now() + withinMs;
  const expires = ({ metadata: { expiresAt } }: SecretEntry) =>
    expiresAt !== undefined && Date.parse(expiresAt) <= limit;
  const shown = io.stdout.isTTY ? { ...flags, long: true as const } : flags;
  const count = await printList(io, folderPages(client, folder), expires, asPaths, shown);
  sayIfEmpty(io, count, "nothing has expired or expires within this time", flags);
}
