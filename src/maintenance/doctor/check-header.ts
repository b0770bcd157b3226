/** Check of a vault's header by the key worker. */
import { join } from "node:path";
import type { Bytes } from "../../../workers/protocol.js";
import { readFileBytes, systemFiles } from "../../files/durable.js";
import { isUnfinished } from "../../storage/unfinished-vault.js";
import { examine, type Inspection, reading } from "./inspection.js";

const fromBackup = "restore it from a backup of the same vault";

/** Larger than any valid header. */
const maxHeaderBytes = 16_384;

/** Returns the bytes of a valid header; null when there is none. */
export async function findHeader(inspection: Inspection, directory: string): Promise<Bytes | null> {
  const path = join(directory, "header.json");
  if ((await examine(inspection, path, "file")) === null) return null;
  const bytes = await reading(inspection, path, () => readFileBytes(systemFiles, path, maxHeaderBytes));
  if (bytes === null || (await inspection.keys.understands(bytes))) return bytes;
  inspection.report({ code: "header-damaged", path, ...whatIsWrong(bytes), fix: null });
  return null;
}

/** Of a header that is not valid. */
export function whatIsWrong(header: Bytes): { readonly message: string; readonly remedy: string } {
  if (isUnfinished(header)) {
    const message = "a migration or a restore into this vault has not ended: it cannot be used yet";
    return { message, remedy: "run the same command again, which finishes it" };
  }
  const message = "it is damaged, or was written by a later version: the vault cannot be unlocked";
  return { message, remedy: fromBackup };
}

export function reportNoHeader(inspection: Inspection, directory: string): void {
  const message = "it is missing: the vault cannot be unlocked";
  inspection.report({
    code: "header-missing",
    path: join(directory, "header.json"),
    message,
    remedy: fromBackup,
    fix: null,
  });
}
