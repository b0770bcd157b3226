/**
 * `strongroom scan`: finds values of the vault in files, in what is staged, and in git's history.
 * It compares hashes that the server makes with the key of one call, and so never has a value.
 * It prints names and lines only.
 */
import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { listSecrets } from "../../cli/kit/connection/secrets.js";
import { type ConnectionFlags, withClient, withConnection } from "../../cli/kit/connection/server.js";
import { CommandFailure, exitCodes } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { breakable, progressBar } from "../../cli/kit/output/progress.js";
import { counted, type OutputFlags, printable, printJson, say, withOutput } from "../../cli/kit/output.js";
import type { CheckEntry, SecretEntry } from "../../client/client.js";
import {
  commitWith,
  filesOfDirectory,
  filesOfHistory,
  filesOfTree,
  isInRepository,
  type ScannedFile,
  type Skip,
  stagedFiles,
} from "./files.js";
import { isCredential, judgementsOf } from "./judge.js";
import { ValueSearch } from "./search.js";

type Flags = ConnectionFlags &
  OutputFlags & {
    readonly prefix?: string;
    readonly staged?: true;
    readonly history: boolean;
    readonly ignored?: true;
    readonly all?: true;
  };

const details = `
In a git repository, scan searches the files that git tracks or would add, and
every version of every file in the history of all branches and tags. --staged
searches only what the next commit would change, for a pre-commit hook:
  printf '#!/bin/sh\\nexec strongroom scan --staged\\n' > .git/hooks/pre-commit
  chmod +x .git/hooks/pre-commit
Elsewhere it searches all files in the directory.

The values stay in the server: this process searches by digests, and finds a
value, its base64, and the longest line of a multi-line value. It does not
search for values under 8 bytes, for common words, or for secrets that are not
passwords by their type or the end of their path, such as a user name; --all
includes all of these except values under 8 bytes.
The exit code is ${exitCodes.findings} when a value is found, and 0 otherwise.`;

export function define(command: Command, io: Io): void {
  command
    .description("Finds values of the vault in a directory and in git's history. Prints no values.")
    .argument("[directory]", "what to search; default: the current directory")
    .addOption(new Option("--staged", "only what the next git commit would change").conflicts(["history", "ignored"]))
    .option("--no-history", "only the files as they are now")
    .option("--ignored", "also files that git ignores, such as .env")
    .option("--prefix <folder>", "only the secrets in this folder")
    .option("--all", "also common words, user names and the like")
    .addHelpText("after", details);
  withConnection(withOutput(command)).action((directory, flags) => scan(io, directory, flags));
}

/** `line`: null in a file that is no text. `commit`: null for a file as it is now. */
type Finding = {
  readonly file: string;
  readonly line: number | null;
  readonly path: string;
  readonly commit: string | null;
};

async function scan(io: Io, directory = ".", flags: Flags): Promise<void> {
  const place = resolve(directory);
  const { search, searched, secrets } = await withClient(io, flags, (client) => searchOf(client, flags));
  const skipped: { readonly file: string; readonly why: string }[] = [];
  const skip: Skip = (file, why) => skipped.push({ file, why });
  const bar = progressBar(io, "scanning");
  let files = 0;
  const found: Finding[] = [];
  const work = breakable(async (signal) => {
    for await (const file of filesFor(io, place, flags, skip)) {
      if (signal.aborted) throw new CommandFailure("aborted", "interrupted: not all files were searched");
      bar.show(++files, files);
      found.push(...(await findingsIn(io, place, file, search)));
    }
  });
  await work.finally(() => bar.end());
  const unique = [...new Map(found.map((one) => [JSON.stringify(one), one])).values()];
  if (flags.json) printJson(io, { ok: unique.length === 0, files, secrets, searched, found: unique, skipped });
  else report(io, unique, skipped, { files, secrets, searched }, flags);
  if (unique.length > 0) io.exitCode = exitCodes.findings;
}

/** A score up to this is that of a common word, which a file may hold by chance. */
const commonScore = 1;

async function searchOf(client: Parameters<typeof listSecrets>[0], { prefix = "", all }: Flags) {
  const listed = new Map((await listSecrets(client, prefix)).map((entry) => [entry.path, entry]));
  const { key, entries } = await judgementsOf(client, prefix, ["strength", "search"]);
  const chosen = entries.filter((entry) => entry.bytes >= 8 && (all || isTelling(entry, listed.get(entry.path))));
  return { search: new ValueSearch(key, chosen), searched: chosen.length, secrets: entries.length };
}

function isTelling({ score }: CheckEntry, listed: SecretEntry | undefined): boolean {
  if (score === undefined || listed?.metadata.type === "certificate") return true; // a binary value has no score
  return score > commonScore && (listed === undefined || isCredential(listed));
}

async function* filesFor(io: Io, directory: string, { staged, history, ignored }: Flags, skip: Skip) {
  if (!(await isInRepository(io, directory))) {
    if (staged) throw new CommandFailure("usage", `${printable(directory)} is not in a git repository`);
    return yield* filesOfDirectory(directory, skip);
  }
  if (staged) return yield* stagedFiles(io, directory, skip);
  yield* filesOfTree(io, directory, ignored === true, skip);
  if (history) yield* filesOfHistory(io, directory, skip);
}

async function findingsIn(io: Io, directory: string, file: ScannedFile, search: ValueSearch): Promise<Finding[]> {
  const { name, origin, bytes } = file;
  const found = search.find(bytes);
  if (found.length === 0) return [];
  const commit = origin === null ? null : ((await commitWith(io, directory, origin)) ?? origin.slice(0, 7));
  const isText = !bytes.subarray(0, 8_000).includes(0);
  return found.map(({ at, path }) => ({ file: name, line: isText ? lineAt(bytes, at) : null, path, commit }));
}

function lineAt(bytes: Buffer, at: number): number {
  let line = 1;
  for (let next = bytes.indexOf(0x0a); next >= 0 && next < at; next = bytes.indexOf(0x0a, next + 1)) line++;
  return line;
}

type Counts = { readonly files: number; readonly secrets: number; readonly searched: number };

function report(
  io: Io,
  found: readonly Finding[],
  skipped: readonly { readonly file: string; readonly why: string }[],
  { files, secrets, searched }: Counts,
  { quiet }: Flags,
): void {
  for (const { file, line, path, commit } of found) {
    const place = `${printable(file)}${line === null ? "" : `:${line}`}`;
    io.stdout.write(`${place}: ${printable(path)}${commit === null ? "" : `  (commit ${commit})`}\n`);
  }
  for (const { file, why } of skipped) say(io, `strongroom: not searched: ${printable(file)}: ${why}\n`);
  if (quiet) return;
  const left = secrets - searched;
  const rest = left === 0 ? "" : `; ${counted(left, "short or common value")} not searched for`;
  const end = found.length === 0 ? "no values found" : `${counted(found.length, "value")} found: replace each of them`;
  io.stdout.write(`${counted(files, "file")} searched for ${counted(searched, "secret")}: ${end}${rest}\n`);
}
