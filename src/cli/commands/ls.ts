/** `strongroom ls`. */
import type { Command } from "commander";
import { type ConnectionFlags, withClient, withConnection } from "../session/connection.js";
import { CommandFailure } from "../session/exit-codes.js";
import { explainEmptyPrefix } from "../session/missing-secrets.js";
import { type ListingFlags, printList, withListing } from "../session/print-list.js";
import { canonical } from "../session/secret-arguments.js";

type Flags = ListingFlags & ConnectionFlags;

export function define(command: Command): void {
  command
    .description("Lists the paths of secrets, one per line; never their values.")
    .argument("[prefix]", "only paths that start with this; app/ is a whole folder");
  withConnection(withListing(command)).action(ls);
}

async function ls(prefix: string | undefined, flags: Flags): Promise<void> {
  const wanted = prefix === undefined ? "" : canonical(prefix);
  await withClient(flags, async (client) => {
    const count = await printList(client.pages({ prefix: wanted, limit: 1000 }), () => true, flags);
    if (count === 0 && wanted !== "") throw new CommandFailure("notFound", await explainEmptyPrefix(client, wanted));
  });
}
