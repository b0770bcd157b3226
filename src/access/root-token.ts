/** Root token: from a setting, from a file, or 32 random bytes made at the first start; and its rotation on a running server. */
import { readFile } from "node:fs/promises";
import type { Clock } from "../clock.js";
import type { Settings } from "../config/definitions.js";
import { isToken, minTokenLength } from "../config/readers.js";
import { StartError, systemCode, VaultError } from "../errors.js";
import { type FileOperations, replaceFile, systemFiles } from "../files/durable.js";
import { type Home, quoted } from "../files/home.js";
import { Mutex } from "../locks.js";
import type { Credentials } from "./credentials.js";
import { isDamagedValue, newTokenValue } from "./token-value.js";

export type Token = {
  readonly text: string;
  /** Description of its source, for messages. */
  readonly source: string;
  /** Null: it is in no file. */
  readonly file: string | null;
};

/** @throws StartError when the token file cannot be used. */
export async function findToken(settings: Pick<Settings, "token" | "tokenFile">, home: Home): Promise<Token> {
  if (settings.token !== null) return { text: settings.token, source: "STRONGROOM_TOKEN", file: null };
  const file = settings.tokenFile ?? home.token;
  const found = await readToken(file, settings.tokenFile !== null);
  return { text: found ?? (await writeNewToken(file)), source: file, file };
}

/** Replaces what is there with a new token that only the user can read. */
export async function writeNewToken(file: string): Promise<string> {
  const made = newTokenValue("root");
  await write(systemFiles, file, made);
  return made;
}

function write(files: FileOperations, file: string, text: string): Promise<void> {
  return replaceFile(files, file, Buffer.from(`${text}\n`));
}

/** Returns null if the home has no token yet. A named file is never created: its name may be misspelled. */
async function readToken(file: string, named: boolean): Promise<string | null> {
  let text: string;
  try {
    text = (await readFile(file, "utf8")).trim();
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT" && !named) return null;
    const fix = code === "ENOENT" ? `create it with  strongroom token rotate --token-file ${quoted(file)}` : "fix it";
    throw new StartError(`the token file ${file} cannot be read (${code}): ${fix}, then start again`);
  }
  if (isDamagedValue(text)) {
    throw new StartError(
      `the token in ${file} is damaged: its checksum does not match; copy it again, or replace it with  strongroom token rotate --token-file ${quoted(file)}`,
    );
  }
  if (isToken(text) && text.length >= minTokenLength) return text;
  if (isToken(text)) {
    throw new StartError(
      `the token in ${file} is shorter than ${minTokenLength} characters: replace it with  strongroom token rotate --token-file ${quoted(file)}`,
    );
  }
  const otherwise = named ? "name the file that does" : "remove it to get a new one";
  throw new StartError(`the token file ${file} does not hold a token: write one into it, or ${otherwise}`);
}

export class RootRotation {
  readonly #file: string | null;
  readonly #credentials: Credentials;
  readonly #clock: Clock;
  readonly #files: FileOperations;
  readonly #inTurn = new Mutex();

  constructor({ file }: Token, credentials: Credentials, clock: Clock, files: FileOperations) {
    this.#file = file;
    this.#credentials = credentials;
    this.#clock = clock;
    this.#files = files;
  }

  /** The old value stays valid for the overlap, or until the server stops. `permit`: called in its turn. @throws VaultError BAD_REQUEST, UNAVAILABLE */
  rotate(overlapSeconds: number, permit: () => void): Promise<string> {
    const file = this.#file;
    if (file === null) {
      throw new VaultError("BAD_REQUEST", "the root token comes from STRONGROOM_TOKEN: change it there, then restart");
    }
    return this.#inTurn.run(async () => {
      permit();
      const text = newTokenValue("root");
      await write(this.#files, file, text).catch((cause: unknown) => this.#unwritten(file, text, cause));
      this.#credentials.replaceRoot(text, this.#clock.now() + overlapSeconds * 1000);
      return text;
    });
  }

  /** DANGER: the file may have the new value all the same, and clients read it: that one must be valid as well then. */
  async #unwritten(file: string, text: string, cause: unknown): Promise<never> {
    const found = await readFile(file, "utf8").catch(() => null);
    if (found === null || found.trim() === text) this.#credentials.addRoot(text);
    throw new VaultError("UNAVAILABLE", "the token file cannot be written: the old token stays valid", { cause });
  }
}
