/** `strongroom ls`. */
import type { Command } from "commander";
import { CommandFailure } from "../lib/errors.js";
import { asTree, type ListingFlags, printList, withListing } from "../lib/listing.js";
import { explainEmptyFolder, pagesOf } from "../lib/secrets.js";
import { type ConnectionFlags, withClient, withConnection } from "../lib/server.js";

type Flags = ListingFlags & ConnectionFlags;

export function define(command: Command): void {
  command
    .description(
      "Lists the paths of secrets, never their values: as a tree on a terminal, otherwise one path per line.",
    )
    .argument("[folder]", "only what is in this folder");
  withConnection(withListing(command)).action(ls);
}

async function ls(folder = "", flags: Flags): Promise<void> {
  await withClient(flags, async (client) => {
    const count = await printList(pagesOf(client, folder), () => true, asTree, flags);
    if (count === 0 && folder !== "") throw new CommandFailure("notFound", await explainEmptyFolder(client, folder));
  });
}
