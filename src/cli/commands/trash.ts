/** `strongroom trash`: what is in the trash, and its destruction. */
import { Argument, type Command } from "commander";
import { type StrongroomClient, StrongroomError } from "../../client/client.js";
import { onlyForActions } from "../kit/args/args.js";
import { mustBePath } from "../kit/args/paths.js";
import { trashIn } from "../kit/connection/secrets.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import {
  counted,
  displayWidth,
  localMinute,
  type OutputFlags,
  padded,
  printable,
  printJson,
  printRows,
  report,
  sayIfEmpty,
  withResult,
} from "../kit/output.js";
import { mustConfirm, withYes } from "../kit/prompts/prompt.js";

type Flags = OutputFlags & ConnectionFlags & { readonly yes?: true };

const details = `
strongroom undo PATH  brings a secret back. The server destroys what has been in
the trash for 30 days, or as its setting --keep-trash-days says.`;

export function define(command: Command, io: Io): void {
  command
    .description(
      "ls lists the deleted secrets and when they were deleted; rm destroys some of them for good, empty all of them.",
    )
    .addArgument(new Argument("<action>", "what to do").choices(["ls", "rm", "empty"]))
    .argument("[path...]", "for rm: the secrets' paths; for ls: a prefix of paths");
  onlyForActions(withResult(withConnection(withYes(command))), { yes: ["rm", "empty"] })
    .addHelpText("after", details)
    .action((action, paths, flags) => trash(io, action, paths, flags));
}

async function trash(io: Io, action: string, paths: readonly string[], flags: Flags): Promise<void> {
  if (action === "ls") return list(io, paths, flags);
  if ((action === "rm") !== paths.length > 0) {
    const problem = action === "rm" ? "rm needs the paths of secrets" : "empty takes no paths";
    throw new CommandFailure("usage", `${problem}: strongroom trash ls  lists what is in the trash`);
  }
  return action === "rm" ? remove(io, paths.map(mustBePath), flags) : empty(io, flags);
}

async function list(io: Io, [start = "", another]: readonly string[], flags: Flags): Promise<void> {
  if (another !== undefined) throw new CommandFailure("usage", "ls takes one prefix");
  const prefix = start === "/" ? "" : start;
  const { entries, damaged } = await withClient(io, flags, (client) => trashIn(client, prefix));
  if (flags.json) return printJson(io, { entries, ...(damaged.length > 0 && { damaged }) });
  const width = Math.max(0, ...entries.map(({ path }) => displayWidth(printable(path))));
  for (const { path, deletedAt } of entries)
    printRows(io, `${padded(printable(path), width)}  ${localMinute(new Date(deletedAt))}\n`);
  const message = prefix === "" ? "the trash is empty" : `nothing in the trash begins with ${printable(prefix)}`;
  sayIfEmpty(io, entries.length + damaged.length, message, flags);
  if (damaged.length === 0) return;
  throw new CommandFailure("findings", `damaged: ${damaged.map(printable).join(", ")}; see  strongroom doctor --open`);
}

async function remove(io: Io, paths: readonly string[], flags: Flags): Promise<void> {
  await mustConfirm(io, `Destroy ${paths.map(printable).join(", ")} for good?`, flags);
  await withClient(io, flags, async (client) => {
    for (const path of paths) await client.destroyTrashed(path);
  });
  report(io, flags, { destroyed: paths }, `destroyed: ${paths.join(", ")}`);
}

async function empty(io: Io, flags: Flags): Promise<void> {
  const { entries, damaged } = await withClient(io, flags, (client) => trashIn(client, ""));
  const paths = [...entries.map(({ path }) => path), ...damaged];
  if (paths.length === 0) return report(io, flags, { destroyed: 0 }, "the trash is empty: nothing was done");
  const secrets = counted(paths.length, "secret");
  await mustConfirm(io, `Destroy the ${secrets} in the trash for good?`, flags);
  const count = await withClient(io, flags, (client) => destroyAll(client, paths));
  report(io, flags, { destroyed: count }, `destroyed: ${counted(count, "secret")}`);
}

/** Returns how many were still there. */
async function destroyAll(client: StrongroomClient, paths: readonly string[]): Promise<number> {
  let count = 0;
  for (const path of paths) {
    try {
      await client.destroyTrashed(path);
      count++;
    } catch (error) {
      if (!(error instanceof StrongroomError) || error.code !== "NOT_FOUND") throw error;
    }
  }
  return count;
}
