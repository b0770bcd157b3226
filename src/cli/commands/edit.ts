/** Owns `strongroom edit`: what counts as a change, and that an edit is not lost when it cannot be stored at once. */
import type { Command } from "commander";
import type { Bytes } from "../../../workers/protocol.js";
import type { Secret } from "../../client/client.js";
import { hardenProcess } from "../../hardening.js";
import { confirm } from "../prompt/confirm.js";
import { editBytes } from "../prompt/editor.js";
import { problemOfBytes, withoutFinalNewline } from "../prompt/value.js";
import { type ConnectionFlags, withClient, withConnection } from "../session/connection.js";
import { CommandFailure } from "../session/exit-codes.js";
import { getIfThere } from "../session/fetch-secrets.js";
import { type OutputFlags, report, withDryRun, withOutput } from "../session/output.js";
import { mustBePath } from "../session/secret-arguments.js";
import { type Limits, limitsOf, problemOfSize } from "../session/server-limits.js";

type Flags = OutputFlags & ConnectionFlags & { readonly raw?: true; readonly onDisk?: true; readonly dryRun?: true };

const details = `
The file is in memory (XDG_RUNTIME_DIR or /dev/shm), readable by you alone, and
is overwritten and removed when the editor ends. What cannot be stored can be
edited again. See that the editor itself keeps nothing elsewhere, for vim:
  VISUAL="vim -n -i NONE --cmd 'set noundofile'"
`;

export function define(command: Command): void {
  command
    .description(
      "Opens a secret's value in $VISUAL, $EDITOR or vi, and stores what you make of it. Without a change nothing is " +
        "stored; an empty file breaks off. A path that has no secret gets a new one.",
    )
    .argument("<path>", "the secret's path")
    .option("--raw", "keep a newline that the editor adds at the end")
    .option("--on-disk", "where no directory is in memory, let the temporary file be on a disk");
  withOutput(withConnection(withDryRun(command)))
    .addHelpText("after", details)
    .action(edit);
}

async function edit(typed: string, flags: Flags): Promise<void> {
  const path = mustBePath(typed);
  await hardenProcess();
  const { secret, limits } = await withClient(flags, async (client) => {
    return { secret: await getIfThere(client, path), limits: await limitsOf(client) };
  });
  const before = Buffer.from(secret?.reveal() ?? "");
  const { after, changed } = await editUntilStorable(before, before, limits, flags).finally(() => before.fill(0));
  try {
    if (after.length === 0) throw new CommandFailure("aborted", "the file is empty: nothing was stored");
    if (!changed) return report(flags, { path, changed }, `${path} is unchanged: nothing was stored`);
    if (flags.dryRun)
      return report(flags, { dryRun: true, path, changed }, `${path} would be stored: nothing was done`);
    const stored = await storeStubbornly(path, after, secret, flags);
    report(flags, { path: stored.path, changed, bytes: stored.bytes }, `${stored.path} stored (${stored.bytes} bytes)`);
  } finally {
    after.fill(0);
  }
}

type ValueLimit = Pick<Limits, "value">;
type Edited = { readonly after: Bytes; readonly changed: boolean };

/** What cannot be stored can be edited again, so that what somebody has typed is not lost. @throws CommandFailure */
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

/** @throws CommandFailure usage, after a no, and when nobody can be asked; aborted */
async function mustWantAnotherTry(problem: string): Promise<void> {
  if (await confirm(`The value ${problem}. Nothing is stored; edit it again?`)) return;
  throw new CommandFailure("usage", `the value ${problem}: nothing was stored`);
}

/** Most editors end the last line: where there was no newline before, the one that they add does not count. */
function likeBefore(after: Bytes, before: Uint8Array, raw: true | undefined): Bytes {
  if (raw || before.at(-1) === 0x0a || after.at(-1) !== 0x0a) return after;
  if (before.length === 0) return withoutFinalNewline(after);
  const shorter = after.slice(0, -1);
  after.fill(0);
  return shorter;
}

/** The vault may have locked itself while somebody was typing: it can be unlocked elsewhere, and the edit is kept. */
async function storeStubbornly(path: string, value: Bytes, secret: Secret | null, flags: Flags) {
  for (;;) {
    try {
      return await withClient(flags, (client) => client.put(path, value, secret?.metadata));
    } catch (error) {
      if (!(error instanceof CommandFailure) || error.exit === "usage") throw error; // what is not valid never will be
      process.stderr.write(`strongroom: ${error.message}\n`);
      if (!(await confirm("The edit is not stored. Mend that in another terminal; try again?"))) throw error;
    }
  }
}
