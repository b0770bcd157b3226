/** `strongroom edit`: a value in the user's editor; an edit that cannot be stored at once is not lost. */
import type { Command } from "commander";
import type { Bytes } from "../../../workers/protocol.js";
import type { Metadata, Secret, Stored, StrongroomClient } from "../../client/client.js";
import { secretText } from "../kit/args/fields.js";
import { mustBePath } from "../kit/args/paths.js";
import { isConflict } from "../kit/connection/changes.js";
import { getIfThere } from "../kit/connection/secrets.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { fetchLimits, type Limits, problemOfSize } from "../kit/connection/server-limits.js";
import { CommandFailure } from "../kit/errors.js";
import { shellWord } from "../kit/hints.js";
import type { Io } from "../kit/io.js";
import { counted, type OutputFlags, printable, report, say, withDryRun, withOutput } from "../kit/output.js";
import { editBytes } from "../kit/prompts/editor.js";
import { confirm } from "../kit/prompts/prompt.js";
import { problemOfBytes, withoutFinalNewline } from "../kit/prompts/value.js";

type Flags = OutputFlags & ConnectionFlags & { readonly raw?: true; readonly onDisk?: true; readonly dryRun?: true };

const details = `
The file is in memory (XDG_RUNTIME_DIR or /dev/shm), readable only by you, and
is overwritten and removed when the editor exits. If the value cannot be stored,
you can edit it again. If the secret changed in the meantime, it is not
replaced: you can edit your text again, or it is kept as <path>.edited-1. Make
sure that the editor keeps no copies; for vim:
  VISUAL="vim -n -i NONE --cmd 'set noundofile'"`;

export function define(command: Command, io: Io): void {
  command
    .description(
      "Opens a secret's value in $VISUAL, $EDITOR or vi, and stores the result. An unchanged value is not stored again; " +
        "an empty file cancels. A path without a secret gets a new one.",
    )
    .argument("<path>", "the secret's path")
    .option("--raw", "keep a newline at the end and a byte order mark that the editor adds")
    .option("--on-disk", "allow a temporary file on disk if no directory is in memory");
  withOutput(withConnection(withDryRun(command)))
    .addHelpText("after", details)
    .action((typed, flags) => edit(io, typed, flags));
}

async function edit(io: Io, typed: string, flags: Flags): Promise<void> {
  const path = mustBePath(typed);
  io.umask(0o077); // the editor may write copies
  const { secret, limits } = await withClient(io, flags, async (client) => {
    return { secret: await getIfThere(client, path), limits: await fetchLimits(client) };
  });
  const text = valueBytes(secret);
  await editAndStore(io, path, secret, text, limits, flags).finally(() => text.fill(0));
}

/** `text`: what the editor shows at first: the value, or what was typed before a conflict. */
async function editAndStore(
  io: Io,
  path: string,
  secret: Secret | null,
  text: Uint8Array,
  limits: ValueLimit,
  flags: Flags,
): Promise<void> {
  const before = valueBytes(secret);
  const { after, changed, hint } = await editUntilStorable(io, text, before, limits, flags).finally(() =>
    before.fill(0),
  );
  try {
    if (after.length === 0) throw new CommandFailure("aborted", `the file is empty: nothing was stored${hint}`);
    if (!changed) return report(io, flags, { path, changed }, `${path} is unchanged: nothing was stored${hint}`);
    if (flags.dryRun)
      return report(
        io,
        flags,
        { dryRun: true, path, changed },
        `${path} would be stored; a dry run: nothing was written`,
      );
    const stored = await storeWithRetry(io, path, after, secret, flags);
    if (stored === null) return await solveConflict(io, path, after, secret?.metadata, limits, flags);
    const { bytes } = stored;
    report(io, flags, { path: stored.path, changed, bytes }, `${stored.path} stored (${counted(bytes, "byte")})`);
  } finally {
    after.fill(0);
  }
}

function valueBytes(secret: Secret | null): Bytes {
  const value = secret === null ? "" : secretText(secret);
  const bytes = new Uint8Array(new ArrayBuffer(Buffer.byteLength(value)));
  new TextEncoder().encodeInto(value, bytes);
  return bytes;
}

type ValueLimit = Pick<Limits, "value">;
type Edited = { readonly after: Bytes; readonly changed: boolean; readonly hint: string };

/** An editor that ends sooner, in milliseconds, cannot have been used. */
const atOnceMs = 1_000;
const hintOfWaiting = ". The editor returned at once: if its window is open, it needs a flag such as --wait";

/** Offers another edit while the value cannot be stored, so that nothing typed is lost. @throws CommandFailure */
async function editUntilStorable(
  io: Io,
  text: Uint8Array,
  before: Uint8Array,
  limits: ValueLimit,
  flags: Flags,
): Promise<Edited> {
  const started = io.clock.elapsed();
  const edited = await editBytes(io, text, flags.onDisk === true);
  const hint = io.clock.elapsed() - started < atOnceMs ? hintOfWaiting : "";
  const after = likeBefore(edited, before, flags.raw);
  const problem = problemOfSize(after.length, limits) ?? problemOfBytes(after);
  if (problem === null) return { after, changed: Buffer.compare(before, after) !== 0, hint };
  try {
    await mustWantAnotherTry(io, problem);
    return await editUntilStorable(io, after, before, limits, flags);
  } finally {
    after.fill(0);
  }
}

/** @throws CommandFailure usage, after a no or without a terminal; aborted */
async function mustWantAnotherTry(io: Io, problem: string): Promise<void> {
  if (await confirm(io, `The value ${problem}. Nothing is stored; edit it again?`)) return;
  throw new CommandFailure("usage", `the value ${problem}: nothing was stored`);
}

/** Drops the byte order mark, and the newline after the last line, that an editor adds and the value did not have before. */
function likeBefore(edited: Bytes, before: Uint8Array, raw: true | undefined): Bytes {
  if (raw) return edited;
  const after =
    startsWithMark(edited) && !startsWithMark(before) ? wipedTo(edited, mark.length, edited.length) : edited;
  if (before.at(-1) === 0x0a || after.at(-1) !== 0x0a) return after;
  if (before.length === 0) return withoutFinalNewline(after);
  return wipedTo(after, 0, after.at(-2) === 0x0d && before.at(-1) !== 0x0d ? -2 : -1);
}

const mark = Buffer.from("\ufeff");

function startsWithMark(bytes: Uint8Array): boolean {
  return mark.equals(bytes.subarray(0, mark.length));
}

/** Returns a part, and wipes the whole. */
function wipedTo(bytes: Bytes, start: number, end: number): Bytes {
  const part = bytes.slice(start, end);
  bytes.fill(0);
  return part;
}

/**
 * Stores the value unless the secret has changed since it was read: null then. Offers to try again: the vault may have
 * locked itself since, and can be unlocked in another terminal.
 */
async function storeWithRetry(
  io: Io,
  path: string,
  value: Bytes,
  secret: Secret | null,
  flags: Flags,
): Promise<Stored | null> {
  const condition = secret === null ? { ifAbsent: true } : { ifMatch: secret.etag };
  const store = async (client: StrongroomClient) => {
    try {
      return await client.put(path, value, { ...secret?.metadata, replaceMetadata: true, ...condition });
    } catch (error) {
      if (isConflict(error)) return null;
      throw error;
    }
  };
  return untilDone(io, () => withClient(io, flags, store));
}

async function untilDone<T>(io: Io, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof CommandFailure) || error.exit === "usage") throw error; // invalid stays invalid
      say(io, `strongroom: ${error.message}\n`);
      if (!(await confirm(io, "The edit is not stored. Fix the problem in another terminal; try again?"))) throw error;
    }
  }
}

/** The text is edited again, or kept in a secret of its own: never lost. @throws CommandFailure */
async function solveConflict(
  io: Io,
  path: string,
  value: Bytes,
  metadata: Metadata | undefined,
  limits: ValueLimit,
  flags: Flags,
): Promise<void> {
  const shown = printable(path);
  const question = `${shown} has changed since you opened it. Edit your text again, to replace the new value?`;
  if (!flags.nonInteractive && (await confirm(io, question))) {
    const current = await untilDone(io, () => withClient(io, flags, (client) => getIfThere(client, path)));
    return editAndStore(io, path, current, value, limits, flags);
  }
  const keep = (client: StrongroomClient) => keepAside(client, path, value, metadata);
  const kept = await untilDone(io, () => withClient(io, flags, keep));
  const [word, keptWord] = [path, kept].map(shellWord);
  const next = `compare them, then  strongroom mv -f ${keptWord} ${word}  or  strongroom rm ${keptWord}`;
  const problem = `${shown} has changed since you opened it; your text is in ${printable(kept)}`;
  throw new CommandFailure("conflict", `${problem}: ${next}`);
}

/** Stores the value beside the secret, under a path that is free; returns that path. */
async function keepAside(client: StrongroomClient, path: string, value: Bytes, metadata?: Metadata): Promise<string> {
  for (let number = 1; ; number++) {
    try {
      return (await client.put(`${path}.edited-${number}`, value, { ...metadata, ifAbsent: true })).path;
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
}
