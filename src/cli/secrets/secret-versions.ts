/** Versions of a secret, as commands name them and explain that one is missing. */
import { Option } from "commander";
import { type Secret, type SecretHistory, type StrongroomClient, StrongroomError } from "../../client/client.js";
import { integer } from "../../config/readers.js";
import { CommandFailure } from "../session/exit-codes.js";
import { explainMissing } from "../session/missing-secrets.js";
import { printable } from "../session/output.js";

export function versionOption(flags: string, meaning: string): Option {
  return new Option(flags, meaning).argParser(integer(1, Number.MAX_SAFE_INTEGER));
}

/** Returns the versions, newest first. @throws CommandFailure notFound; StrongroomError */
export async function mustGetHistory(client: StrongroomClient, path: string): Promise<SecretHistory> {
  try {
    return await client.versions(path);
  } catch (error) {
    if (!isMissing(error)) throw error;
    throw new CommandFailure("notFound", await explainMissing(client, path));
  }
}

/** @throws CommandFailure notFound; StrongroomError */
export async function mustGetVersion(client: StrongroomClient, path: string, version: number): Promise<Secret> {
  try {
    return await client.version(path, version);
  } catch (error) {
    if (!isMissing(error)) throw error;
    throw noSuchVersion(await mustGetHistory(client, path), version);
  }
}

export function noSuchVersion({ path, versions }: SecretHistory, version: number): CommandFailure {
  const kept = versions.map((each) => each.version).join(", ");
  return new CommandFailure("notFound", `${printable(path)} has no version ${version}: it has ${kept}`);
}

function isMissing(error: unknown): boolean {
  return error instanceof StrongroomError && error.code === "NOT_FOUND";
}
