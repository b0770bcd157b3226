/** `strongroom ls`. */
import type { Command } from "commander";
import { asTree, type ListingFlags, printList, withListing } from "../listing/print-list.js";
import { type ConnectionFlags, withClient, withConnection } from "../session/connection.js";
import { CommandFailure } from "../session/exit-codes.js";
import { explainEmptyPrefix } from "../session/missing-secrets.js";
import { canonical } from "../session/secret-arguments.js";

type Flags = ListingFlags & ConnectionFlags;

export function define(command: Command): void {
  command
    .description("Lists the paths of secrets, never their values: as a tree on a terminal, else one path per line.")
    .argument("[prefix]", "only paths that start with this; app/ is a whole folder");
  withConnection(withListing(command)).action(ls);
}

async function ls(prefix: string | undefined, flags: Flags): Promise<void> {
  const wanted = prefix === undefined ? "" : canonical(prefix);
  await withClient(flags, async (client) => {
    const count = await printList(client.pages({ prefix: wanted, limit: 1000 }), () => true, asTree, flags);
    if (count === 0 && wanted !== "") throw new CommandFailure("notFound", await explainEmptyPrefix(client, wanted));
  });
}
