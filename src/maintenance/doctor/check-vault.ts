/** Owns the check of one vault: its header, the directory of its secrets, and the secrets. */
import type { Dirent } from "node:fs";
import { rmdir } from "node:fs/promises";
import { join } from "node:path";
import type { Bytes } from "../../../workers/protocol.js";
import { ignoring, isTempName, makeDirectory, systemFiles } from "../../files/durable.js";
import { examineBlobs } from "./check-blobs.js";
import { reportNoHeader } from "./check-header.js";
import { walkTree } from "./check-tree.js";
import { entriesOf, examine, type Inspection } from "./inspection.js";
import { reportLeftover, reportStray } from "./stray-files.js";

/** `header` is null when there is none that can be used. */
export type FoundVault = { readonly name: string; readonly directory: string; readonly header: Bytes | null };

/** Answers how many secrets it has. */
export async function examineVault(inspection: Inspection, vault: FoundVault, inForce: boolean): Promise<number> {
  const { name, directory, header } = vault;
  const secrets = join(directory, "secrets");
  const entries = await judgeEntries(inspection, directory);
  const names = entries.map((entry) => entry.name);
  if (!names.includes("header.json")) {
    if (!inForce && (await isHusk(inspection, entries, secrets))) return reportHusk(inspection, directory, secrets);
    reportNoHeader(inspection, directory);
  }
  if (inForce && header !== null) await inspection.keys.unlock(name, header);
  if (!names.includes("secrets")) return reportNoSecrets(inspection, secrets);
  if ((await examine(inspection, secrets, "directory")) === null) return 0;
  const files = await walkTree(inspection, secrets);
  await examineBlobs(inspection, files, inspection.keys.opened === name);
  return files.length;
}

/** Answers what stands in the directory. */
async function judgeEntries(inspection: Inspection, directory: string): Promise<readonly Dirent[]> {
  const entries = await entriesOf(inspection, directory);
  for (const entry of entries) {
    if (entry.name !== "header.json" && entry.name !== "secrets") {
      await reportStray(inspection, join(directory, entry.name), entry);
    }
  }
  return entries;
}

/** What an init leaves that was broken off before it wrote the header: nothing is lost with it. */
export async function isHusk(inspection: Inspection, entries: readonly Dirent[], secrets: string): Promise<boolean> {
  if (entries.some(({ name }) => name !== "secrets" && !isTempName(name))) return false;
  return (await entriesOf(inspection, secrets)).length === 0;
}

async function reportHusk(inspection: Inspection, directory: string, secrets: string): Promise<number> {
  const remove = async () => {
    await ignoring(rmdir(secrets), "ENOENT");
    await rmdir(directory);
  };
  const message = "an init that was broken off has left it; nothing uses it";
  await reportLeftover(inspection, { code: "stray-directory", path: directory, message }, remove);
  return 0;
}

function reportNoSecrets(inspection: Inspection, secrets: string): number {
  inspection.report({
    code: "secrets-missing",
    path: secrets,
    message: "it is missing; if the vault had secrets, they are gone",
    remedy: "put it back from a backup; if the vault was empty, start the server, which makes it",
    fix: { did: "made an empty one", whileServed: false, run: () => makeDirectory(systemFiles, secrets) },
  });
  return 0;
}
