/** `strongroom find`: case-insensitive search of paths and descriptions. */
import type { Command } from "commander";
import type { SecretEntry } from "../../client/client.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { asPaths, type ListingFlags, printList, withListing } from "../kit/output/listing.js";

type Flags = ListingFlags & ConnectionFlags;

export function define(command: Command, io: Io): void {
  command
    .description("Lists the secrets whose path or description contains a text, ignoring case. Values are not searched.")
    .argument("<text>", "the text to search for");
  withConnection(withListing(command)).action((text, flags) => find(io, text, flags));
}

async function find(io: Io, text: string, flags: Flags): Promise<void> {
  const wanted = folded(text);
  const has = ({ path, metadata }: SecretEntry) => {
    return folded(path).includes(wanted) || folded(metadata.description ?? "").includes(wanted);
  };
  const count = await withClient(io, flags, (client) =>
    printList(io, client.pages({ limit: 1000 }), has, asPaths, flags),
  );
  if (count > 0) return;
  throw new CommandFailure("notFound", "no path or description contains this text; strongroom ls  lists all paths");
}

function folded(text: string): string {
  return text.normalize("NFC").toLowerCase();
}
