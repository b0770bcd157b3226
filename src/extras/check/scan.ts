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
import { counted, type OutputFlags, printable, printJson, printRows, say, withOutput } from "../../cli/kit/output.js";
import type { CheckEntry, SecretEntry } from "../../client/client.js";
import { decodings } from "./decode.js";
import { Places } from "./files.js";
import { commitWith } from "./history.js";
import { isCredential, judgeFolder } from "./judge.js";
import type { ScannedFile } from "./scanned-file.js";
import { ValueSearch } from "./search.js";
import { reasons, UnsearchedList } from "./unsearched.js";

type Flags = ConnectionFlags &
  OutputFlags & {
    readonly prefix?: string;
    readonly staged?: true;
    readonly history: boolean;
    readonly ignored?: true;
    readonly all?: true;
  };

const details = `
In a git repository, scan searches the files that git tracks or would add, the
submodules and repositories in it, and every version of every file in its
history. --staged searches only what the next commit would change, for a
pre-commit hook:
  printf '#!/bin/sh\\nexec strongroom scan --staged\\n' > .git/hooks/pre-commit
  chmod +x .git/hooks/pre-commit
Elsewhere it searches all files in the directory and the repositories in it.

The values stay in the server: this process searches by digests. It finds a
value as it is, the longest line of a value of several lines, and a value in
base64 (at any place of what was encoded), hex, UTF-16, escaped for JSON, URLs
or HTML, and in gzip and zip files.

Searched for is every URL with a password, everything of at least 12 bytes that
looks random, and every password by its type or path. Not searched for, and
counted: values under 8 bytes, those that are easily guessed, and addresses,
user names and the like; --all includes all but those under 8 bytes.

The exit code is ${exitCodes.findings} when a value is found, ${exitCodes.aborted} when none is found and a place
could not be searched, such as the history of a shallow clone, a submodule that
is not checked out, or a compressed file of another kind, and 0 otherwise. Each
such place is named. What git ignores is counted, and changes no exit code.`;

export function define(command: Command, io: Io): void {
  command
    .description("Finds values of the vault in a directory and in git's history. Prints no values.")
    .argument("[directory]", "what to search; default: the current directory")
    .addOption(new Option("--staged", "only what the next git commit would change").conflicts(["history", "ignored"]))
    .option("--no-history", "only the files as they are now")
    .option("--ignored", "also files that git ignores, such as .env")
    .option("--prefix <folder>", "only the secrets in this folder")
    .option("--all", "also search for common words, user names and the like")
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
  const list = new UnsearchedList();
  const { search, secrets, left, damaged } = await withClient(io, flags, (client) => buildSearch(client, flags));
  for (const path of damaged) list.skip(path, reasons.damaged);
  const what = { staged: flags.staged === true, history: flags.history, ignored: flags.ignored === true };
  const places = new Places(io, resolve(io.cwd(), directory), what, list);
  const bar = progressBar(io, "scanning");
  let files = 0;
  const found: Finding[] = [];
  const work = breakable(io, async (signal) => {
    for await (const file of places.files()) {
      if (signal.aborted) throw new CommandFailure("aborted", "interrupted: not all files were searched");
      bar.show(++files, files);
      found.push(...(await findingsIn(file, search, list)));
    }
  });
  await work.finally(() => bar.end());
  const unique = [...new Map(found.map((one) => [JSON.stringify(one), one])).values()];
  const searched = secrets - Object.values(left).reduce((sum, count) => sum + count, 0);
  const result = { files, secrets, searched, left, found: unique, list };
  if (flags.json) printJson(io, asJson(result));
  else report(io, result, flags);
  if (unique.length > 0) io.exitCode = exitCodes.findings;
  else if (list.missed > 0) io.exitCode = exitCodes.aborted;
}

/** A score up to this is that of a common word, which a file may hold by chance. */
const commonScore = 1;
const shortestSearched = 8;

/** Why a value is not searched for, and how such values are counted. */
const leftReasons = {
  short: `under ${shortestSearched} bytes`,
  guessable: "easily guessed",
  ordinary: "addresses, user names and the like",
} as const;
type Left = keyof typeof leftReasons;

async function buildSearch(client: Parameters<typeof listSecrets>[0], { prefix = "", all }: Flags) {
  const listed = new Map((await listSecrets(client, prefix)).map((entry) => [entry.path, entry]));
  const { key, entries, damaged } = await judgeFolder(client, prefix, ["strength", "search"]);
  const left: Record<Left, number> = { short: 0, guessable: 0, ordinary: 0 };
  const chosen = entries.filter((entry) => {
    const why = reasonToLeave(entry, listed.get(entry.path), all === true);
    if (why !== null) left[why]++;
    return why === null;
  });
  return { search: new ValueSearch(key, chosen), secrets: entries.length, left, damaged };
}

function reasonToLeave(entry: CheckEntry, listed: SecretEntry | undefined, all: boolean): Left | null {
  if ((entry.search ?? []).length === 0) return "short";
  if (all || entry.form === "secret") return null;
  if (entry.score === undefined || listed?.metadata.type === "certificate") return null; // a binary value has no score
  if (entry.score <= commonScore) return "guessable";
  return listed === undefined || isCredential(listed, entry) ? null : "ordinary";
}

async function findingsIn(file: ScannedFile, search: ValueSearch, list: UnsearchedList): Promise<Finding[]> {
  const { name, origin, bytes, place } = file;
  const found: Finding[] = [];
  const reasonsHere = new Set<string>();
  for (const { bytes: reading, inner, line } of decodings(bytes, (why) => reasonsHere.add(why))) {
    const within = inner === "" ? name : `${name}/${inner}`;
    for (const { at, path } of search.find(reading)) found.push({ file: within, line: line(at), path, commit: null });
  }
  for (const why of reasonsHere) list.skip(name, why);
  if (found.length === 0 || origin === null || place === null) return found;
  const commit = (await commitWith(place, origin)) ?? origin.slice(0, 7);
  return found.map((one) => ({ ...one, commit }));
}

type Result = {
  readonly files: number;
  readonly secrets: number;
  readonly searched: number;
  readonly left: Readonly<Record<Left, number>>;
  readonly found: readonly Finding[];
  readonly list: UnsearchedList;
};

function asJson({ files, secrets, searched, left, found, list }: Result): object {
  const skipped = list.all.map(({ file, why }) => ({ file, why }));
  return { ok: found.length + list.missed === 0, files, secrets, searched, left, found, skipped };
}

function report(io: Io, { files, searched, left, found, list }: Result, { quiet }: Flags): void {
  for (const { file, line, path, commit } of found) {
    const place = `${printable(file)}${line === null ? "" : `:${line}`}`;
    printRows(io, `${place}: ${printable(path)}${commit === null ? "" : `  (commit ${commit})`}\n`);
  }
  for (const line of list.lines()) say(io, `strongroom: not searched: ${printable(line)}\n`);
  if (quiet) return;
  const rest = Object.entries(left).flatMap(([why, count]) =>
    count > 0 ? [`${count} ${leftReasons[why as Left]}`] : [],
  );
  const parts = [
    `${counted(files, "file")} searched for ${counted(searched, "secret")}: ${verdict(found.length, list.missed)}`,
    ...(rest.length === 0 ? [] : [`not searched for: ${rest.join(", ")}`]),
    ...(list.ignored === 0 ? [] : [`${list.ignored} that git ignores not searched: --ignored`]),
  ];
  printRows(io, `${parts.join("; ")}\n`);
}

function verdict(found: number, missed: number): string {
  const places = missed === 0 ? "" : `, and ${counted(missed, "place")} not searched`;
  if (found > 0) return `${counted(found, "value")} found: replace each of them${places}`;
  return missed === 0 ? "no values found" : `none found in them${places}`;
}
