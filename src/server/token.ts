/** Owns where the bearer token comes from: a setting, a file, or 32 random bytes at first start. */
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Settings } from "../config/definitions.js";
import { isToken } from "../config/readers.js";
import { StartError, systemCode } from "../errors.js";
import { replaceFile, systemFiles } from "../storage/durable.js";
import type { Home } from "./home.js";

export type Token = { readonly text: string /** For people: where to find it. */; readonly source: string };

/** @throws StartError when the token file cannot be used. */
export async function findToken(settings: Pick<Settings, "token" | "tokenFile">, home: Home): Promise<Token> {
  if (settings.token !== null) return { text: settings.token, source: "STRONGROOM_TOKEN" };
  const file = settings.tokenFile ?? home.token;
  const found = await readToken(file, settings.tokenFile === null);
  if (found !== null) return { text: found, source: file };
  return { text: await writeNewToken(file), source: file };
}

/** For the user alone, whatever was there before. */
export async function writeNewToken(file: string): Promise<string> {
  const made = `srt_${randomBytes(32).toString("base64url")}`;
  await replaceFile(systemFiles, file, Buffer.from(`${made}\n`));
  return made;
}

async function readToken(file: string, mayBeMissing: boolean): Promise<string | null> {
  let text: string;
  try {
    text = (await readFile(file, "utf8")).trim();
  } catch (error) {
    if (mayBeMissing && systemCode(error) === "ENOENT") return null;
    throw new StartError(`the token file ${file} cannot be read (${systemCode(error)}): mend it, then start again`);
  }
  if (isToken(text)) return text;
  throw new StartError(
    `the token file ${file} does not hold a token: write one into it, or remove it to get a new one`,
  );
}
