/** `strongroom edit`: a value in the user's editor; an edit that cannot be stored at once is not lost. */
import type { Command } from "commander";
import type { Bytes } from "../../../workers/protocol.js";
import type { Secret } from "../../client/client.js";
import { confirm } from "../prompt/confirm.js";
import { editBytes } from "../prompt/editor.js";
import { problemOfBytes, withoutFinalNewline } from "../prompt/value.js";
import { type ConnectionFlags, withClient, withConnection } from "../session/connection.js";
import { CommandFailure } from "../session/exit-codes.js";
import { getIfThere } from "../session/fetch-secrets.js";
import { counted, type OutputFlags, report, withDryRun, withOutput } from "../session/output.js";
import { mustBePath } from "../session/secret-arguments.js";
import { type Limits, limitsOf, problemOfSize } from "../session/server-limits.js";

type Flags = OutputFlags & ConnectionFlags & { readonly raw?: true; readonly onDisk?: true; readonly dryRun?: true };

const details = `
The file is in memory (XDG_RUNTIME_DIR or /dev/shm), readable only by you, and
is overwritten and removed when the editor exits. If the value cannot be stored,
you can edit it again. Make sure that the editor keeps no copies; for vim:
  VISUAL="vim -n -i NONE --cmd 'set noundofile'"
`;

export function define(command: Command): void {
  command
    .description(
      "Opens a secret's value in $VISUAL, $EDITOR or vi, and stores the result. An unchanged value is not stored again; " +
        "an empty file cancels. A path without a secret gets a new one.",
    )
    .argument("<path>", "the secret's path")
    .option("--raw", "keep the newline that the editor adds at the end")
    .option("--on-disk", "allow a temporary file on disk if no directory is in memory");
  withOutput(withConnection(withDryRun(command)))
    .addHelpText("after", details)
    .action(edit);
}

async function edit(typed: string, flags: Flags): Promise<void> {
  const path = mustBePath(typed);
  process.umask(0o077); // the editor may write copies
  const { secret, limits } = await withClient(flags, async (client) => {
    return { secret: await getIfThere(client, path), limits: await limitsOf(client) };
  });
  const before = Buffer.from(secret?.reveal() ?? "");
  const { after, changed } = await editUntilStorable(before, before, limits, flags).finally(() => before.fill(0));
  try {
    if (after.length === 0) throw new CommandFailure("aborted", "the file is empty: nothing was stored");
    if (!changed) return report(flags, { path, changed }, `${path} is unchanged: nothing was stored`);
    if (flags.dryRun)
      return report(flags, { dryRun: true, path, changed }, `${path} would be stored; a dry run: nothing was written`);
    const stored = await storeWithRetry(path, after, secret, flags);
    report(
      flags,
      { path: stored.path, changed, bytes: stored.bytes },
      `${stored.path} stored (${counted(stored.bytes, "byte")})`,
    );
  } finally {
    after.fill(0);
  }
}

type ValueLimit = Pick<Limits, "value">;
type Edited = { readonly after: Bytes; readonly changed: boolean };

/** Offers another edit while the value cannot be stored, so that nothing typed is lost. @throws CommandFailure */
async function editUntilStorable(
  text: Uint8Array,
  before: Uint8Array,
  limits: ValueLimit,
  flags: Flags,
): Promise<Edited> {
  const after = likeBefore(await editBytes(text, flags.onDisk === true), before, flags.raw);
  const problem = problemOfSize(after.length, limits) ?? problemOfBytes(after);
  if (problem === null) return { after, changed: Buffer.compare(before, after) !== 0 };
  try {
    await mustWantAnotherTry(problem);
    return await editUntilStorable(after, before, limits, flags);
  } finally {
    after.fill(0);
  }
}

/** @throws CommandFailure usage, after a no or without a terminal; aborted */
async function mustWantAnotherTry(problem: string): Promise<void> {
  if (await confirm(`The value ${problem}. Nothing is stored; edit it again?`)) return;
  throw new CommandFailure("usage", `the value ${problem}: nothing was stored`);
}

/** Drops the newline that most editors add to the last line, unless the value ended in one before. */
function likeBefore(after: Bytes, before: Uint8Array, raw: true | undefined): Bytes {
  if (raw || before.at(-1) === 0x0a || after.at(-1) !== 0x0a) return after;
  if (before.length === 0) return withoutFinalNewline(after);
  const shorter = after.slice(0, -1);
  after.fill(0);
  return shorter;
}

/** Offers to try again: the vault may have locked itself meanwhile, and can be unlocked in another terminal. */
async function storeWithRetry(path: string, value: Bytes, secret: Secret | null, flags: Flags) {
  for (;;) {
    try {
      return await withClient(flags, (client) => client.put(path, value, secret?.metadata));
    } catch (error) {
      if (!(error instanceof CommandFailure) || error.exit === "usage") throw error; // invalid stays invalid
      process.stderr.write(`strongroom: ${error.message}\n`);
      if (!(await confirm("The edit is not stored. Fix the problem in another terminal; try again?"))) throw error;
    }
  }
}
