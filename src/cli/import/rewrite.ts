/** `import --rewrite`: puts references in the place of the values that are in the vault now, as `run -e` reads them. */
import { open, realpath, stat, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import type { StrongroomClient } from "../../client/client.js";
import { findWeakPlace, ownUid, weakPlaceText } from "../../client/ownership.js";
import { systemCode } from "../../errors.js";
import { ignoring, moveFileOver, randomName, syncDirectory, systemFiles } from "../../files/durable.js";
import { failureReason } from "../../files/file-problem.js";
import { secretsAt } from "../kit/connection/secrets.js";
import { CommandFailure } from "../kit/errors.js";
import { printable } from "../kit/output.js";
import { readInputFile, textOfInput } from "../kit/prompts/input.js";
import { type Assignment, parseDotenv } from "./dotenv.js";
import { isReference } from "./dotenv-values.js";

/** A line that keeps its value. */
type KeptLine = { readonly line: number; readonly name: string; readonly why: string };

type Rewritten = { readonly rewritten: number; readonly kept: readonly KeptLine[] };

type Options = {
  /** Returns the path at which a variable is stored; null when it was not imported. */
  readonly importedPath: (line: number) => string | null;
  /** Returns why `run -e` would take no reference for this variable; null when it does. */
  readonly variableProblem: (name: string) => string | null;
  /** Changes nothing, and takes every value that would be stored as stored. */
  readonly dryRun: boolean;
};

/** Rewrites the lines whose value is stored at their path, and keeps the others. @throws CommandFailure usage, unexpected */
export async function rewriteDotenv(client: StrongroomClient, file: string, options: Options): Promise<Rewritten> {
  const source = await readSource(file);
  const candidates = parseDotenv(source.text, file).filter(({ value }) => !isReference(value));
  const stored = options.dryRun ? null : await storedValues(client, candidates, options.importedPath);
  const { kept, edits } = planned(candidates, stored, options);
  if (edits.length > 0 && !options.dryRun) await replace(source, edited(source.text, edits));
  return { rewritten: edits.length, kept };
}

/** `stored`: null takes every value that was imported as stored. */
function planned(
  candidates: readonly Assignment[],
  stored: ReadonlyMap<string, string> | null,
  { importedPath, variableProblem }: Options,
): { readonly kept: readonly KeptLine[]; readonly edits: readonly Edit[] } {
  const kept: KeptLine[] = [];
  const edits: Edit[] = [];
  for (const { name, line, value, from, to } of candidates) {
    const path = importedPath(line);
    const isStored = path !== null && (stored === null || stored.get(path) === value);
    const why = variableProblem(name) ?? (isStored ? null : "the vault does not have this value");
    if (why !== null) kept.push({ line, name, why });
    else edits.push({ from, to, text: referenceTo(path ?? "") });
  }
  return { kept, edits };
}

async function storedValues(
  client: StrongroomClient,
  candidates: readonly Assignment[],
  importedPath: Options["importedPath"],
): Promise<ReadonlyMap<string, string>> {
  const paths = candidates.map(({ line }) => importedPath(line)).filter((path) => path !== null);
  const values = new Map<string, string>();
  for await (const [path, secret] of secretsAt(client, paths)) {
    if (secret !== undefined && secret.encoding === undefined) values.set(path, secret.reveal());
  }
  return values;
}

function referenceTo(path: string): string {
  return `strongroom://${path.split("/").map(encodeURIComponent).join("/")}`;
}

type Edit = { readonly from: number; readonly to: number; readonly text: string };

function edited(text: string, edits: readonly Edit[]): string {
  let [result, end] = ["", 0];
  for (const edit of edits.toSorted((a, b) => a.from - b.from)) {
    result += text.slice(end, edit.from) + edit.text;
    end = edit.to;
  }
  return result + text.slice(end);
}

/** `text`: with line ends as `parseDotenv` counts them; `original`: as it is in the file. */
type Source = { readonly file: string; readonly name: string; readonly original: string; readonly text: string };

const mark = "\uFEFF";

async function readSource(file: string): Promise<Source> {
  const name = printable(file);
  const target = await realpath(file);
  await refuseForeign(file, target, name);
  const original = textOfInput(await readInputFile(target, name), name);
  const text = original.replace(/^\uFEFF/, "").replaceAll("\r\n", "\n");
  if (asInFile(original, text) === original && !text.includes("\r")) return { file: target, name, original, text };
  throw new CommandFailure("usage", `${name} has mixed line ends: make them all the same, then rewrite it`);
}

/** The file decides what programs get, so only its user may change it or its place. @throws CommandFailure usage */
async function refuseForeign(file: string, target: string, name: string): Promise<void> {
  const weak = (await findWeakPlace(file)) ?? (await findWeakPlace(target));
  if (weak !== null) throw new CommandFailure("usage", printable(weakPlaceText(file, weak)));
  if (ownUid === null || (await stat(target)).uid === ownUid) return;
  throw new CommandFailure("usage", `${name} belongs to another user: rewrite it as that user`);
}

/** Returns the text with the line ends, and the mark at its beginning, of the original. */
function asInFile(original: string, text: string): string {
  const ends = original.includes("\r\n") ? text.replaceAll("\n", "\r\n") : text;
  return original.startsWith(mark) ? `${mark}${ends}` : ends;
}

/** Atomic; the mode stays. */
async function replace({ file, name, original, text }: Source, changed: string): Promise<void> {
  if (changed === text) return;
  const temp = `${file}.tmp-${randomName()}`;
  try {
    const { mode } = await stat(file);
    const handle = await open(temp, "wx", 0o600);
    try {
      await handle.writeFile(asInFile(original, changed));
      await handle.chmod(mode & 0o777);
      await handle.sync();
    } finally {
      await handle.close();
    }
    if (textOfInput(await readInputFile(file, name), name) !== original)
      throw new CommandFailure("conflict", `${name} has just changed: nothing was rewritten, run it again`);
    await moveFileOver(systemFiles, temp, file);
    await syncDirectory(systemFiles, dirname(file));
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
    throw new CommandFailure("unexpected", `${name} cannot be rewritten${failureReason(systemCode(error))}`);
  } finally {
    await ignoring(unlink(temp), "ENOENT");
  }
}
