/** `strongroom generate`: the shape of the value, protection from overwriting, and where the value is shown. */

import { randomInt } from "node:crypto";
import { type Command, Option } from "commander";
import { integer, Problem } from "../../config/readers.js";
import { EarlierOption, onlyWith } from "../kit/args/args.js";
import { canonical } from "../kit/args/paths.js";
import { creating, refuseOverwriting } from "../kit/connection/changes.js";
import { lookAt } from "../kit/connection/secrets.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import { refuseTooLarge } from "../kit/connection/server-limits.js";
import { CommandFailure } from "../kit/errors.js";
import { shellWord } from "../kit/hints.js";
import type { Io } from "../kit/io.js";
import {
  type Clipboard,
  type ClipboardFlags,
  copyAndClear,
  mustFindClipboard,
  withClipboard,
} from "../kit/output/clipboard.js";
import { type OutputFlags, printable, printValue, report, withDryRun, withResult } from "../kit/output.js";
import { entropyBits, type RandomValue, randomWords } from "../kit/random-words.js";
import { given, type MetadataFlags, withMetadata } from "./put.js";

type Shape = {
  readonly length: number;
  readonly sets: readonly CharacterSet[];
  readonly words?: number;
  readonly separator: string;
};

type Flags = OutputFlags &
  ConnectionFlags &
  ClipboardFlags &
  MetadataFlags &
  Shape & { readonly print?: true; readonly replace?: true; readonly dryRun?: true };

const characterSets = {
  lower: "abcdefghijklmnopqrstuvwxyz",
  upper: "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
  digits: "0123456789",
  symbols: "!#$%&()*+,-./:;<=>?@[]^_{|}~",
  hex: "0123456789abcdef",
} as const;

type CharacterSet = keyof typeof characterSets;

const usualSets: readonly CharacterSet[] = ["lower", "upper", "digits"];
const setNames = Object.keys(characterSets).join(", ");

export function define(command: Command, io: Io): void {
  const words = new Option("--words <number>", "words from a list of 7776, instead of characters");
  onlyWith(command, "separator", "words")
    .description("Generates a random value and stores it. Only --print and --copy show it.")
    .argument("<path>", "the secret's path")
    .addOption(new Option("--length <number>", "number of characters").argParser(integer(1, 4096)).default(32))
    .addOption(
      new Option("--sets <sets>", `sets to draw from, at least one character of each: ${setNames}`)
        .argParser(readSets)
        .default(usualSets, usualSets.join(",")),
    )
    .addOption(words.argParser(integer(1, 100)).conflicts(["length", "sets"]))
    .option("--separator <text>", "text between words", "-")
    .addOption(new Option("-p, --print", "print the value").conflicts("copy"))
    .option("-f, --replace", "replace an existing secret; it keeps its type and description")
    .addOption(new EarlierOption("--force", "replace"));
  withResult(withConnection(withDryRun(withClipboard(withMetadata(command, io))))).action((path, flags) =>
    generate(io, path, flags),
  );
}

const remedy = "--replace replaces it";

async function generate(io: Io, path: string, flags: Flags): Promise<void> {
  const clipboard = flags.copy ? mustFindClipboard(io) : null;
  const { bytes, bits } = await randomValue(flags);
  const replaced = await withClient(io, flags, async (client) => {
    const there = await lookAt(client, path);
    if (there !== null && !flags.replace) refuseOverwriting(path, remedy);
    if (flags.dryRun) return refuseTooLarge(client, bytes.length, flags.description).then(() => there !== null);
    const type = there?.entry?.metadata.type ?? "password";
    const options = { type, ...given(flags), ifAbsent: !flags.replace };
    const { version } = await creating(path, remedy, () => client.put(path, bytes, options));
    return there !== null || version > 1;
  });
  if (flags.dryRun) return reportPlan(io, path, replaced, flags);
  if (clipboard !== null) await copyStored(io, clipboard, Buffer.from(bytes), path, flags);
  reportStored(io, { path: canonical(path), bits, replaced }, bytes, flags);
  bytes.fill(0);
}

async function copyStored(io: Io, clipboard: Clipboard, value: Buffer, path: string, flags: Flags): Promise<void> {
  try {
    await copyAndClear(io, clipboard, value, flags);
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    const stands = `${printable(path)} is stored: show it with  strongroom get ${shellWord(path)}`;
    throw new CommandFailure(error.exit, `${error.message}; ${stands}`);
  }
}

type Generated = { readonly path: string; readonly bits: number; readonly replaced: boolean };

/** With --print, standard output gets the value alone. */
function reportStored(io: Io, generated: Generated, value: Uint8Array, flags: Flags): void {
  const shown = flags.print ? { value: Buffer.from(value).toString("utf8") } : {};
  const { path, bits, replaced } = generated;
  const text = `${path} ${replaced ? "replaced" : "stored"}, about ${bits} bits; ${whereTo(path, flags)}`;
  if (flags.print && !flags.json) printValue(io, value);
  else report(io, flags, { ...generated, copied: flags.copy === true, ...shown }, text);
}

function whereTo(path: string, { copy, clearAfter }: Flags): string {
  if (!copy) return `show it with  strongroom get ${shellWord(path)}`;
  return clearAfter === 0 ? "it is in the clipboard" : `it is in the clipboard for ${clearAfter} s`;
}

function reportPlan(io: Io, path: string, replaced: boolean, flags: Flags): void {
  const text = `${path} would be ${replaced ? "replaced" : "stored"}: nothing was done`;
  report(io, flags, { dryRun: true, path: canonical(path), replaced }, text);
}

async function randomValue({ length, sets, words, separator }: Shape): Promise<RandomValue> {
  if (words !== undefined) return randomWords(words, separator);
  if (length >= sets.length) return randomCharacters(length, sets);
  throw new CommandFailure("usage", `${sets.length} sets need at least ${sets.length} characters: raise --length`);
}

function readSets(text: string): readonly CharacterSet[] {
  return text.split(",").map((name) => {
    if (Object.hasOwn(characterSets, name)) return name as CharacterSet;
    throw new Problem(`one or more of ${setNames}, separated by commas`);
  });
}

/** Draws until every set has a character: `randomInt` has no bias, and redrawing the whole value adds none. */
function randomCharacters(length: number, sets: readonly CharacterSet[]): RandomValue {
  const alphabet = [...new Set(sets.flatMap((set) => [...characterSets[set]]))].join("");
  const bytes = new Uint8Array(new ArrayBuffer(length));
  do {
    for (let at = 0; at < length; at++) bytes[at] = alphabet.charCodeAt(randomInt(alphabet.length));
  } while (!sets.every((set) => bytes.some((byte) => characterSets[set].includes(String.fromCharCode(byte)))));
  return { bytes, bits: entropyBits(length, alphabet.length) };
}
