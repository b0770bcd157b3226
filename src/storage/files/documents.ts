/** Small documents of one vault: a file each, beside its header, replaced durably. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Bytes } from "../../../workers/protocol.js";
import { type FileOperations, replaceFile } from "../../files/durable.js";
import { readFileBytes } from "../../files/read-file.js";
import { documentName, maxDocumentBytes, type StoredDocument } from "../secret-store.js";

const suffix = ".document";

export function isDocumentFile(name: string): boolean {
  return name.endsWith(suffix) && documentName.test(name.slice(0, -suffix.length));
}

/** Returns a document's file name. */
export function documentFile(name: string): string {
  if (!documentName.test(name)) throw new Error(`invalid name of a document: ${name}`);
  return name + suffix;
}

export async function readDocument(
  files: FileOperations,
  directory: string,
  name: string,
): Promise<StoredDocument | null> {
  const bytes = await readFileBytes(files, join(directory, documentFile(name)), maxDocumentBytes);
  return bytes && { bytes, tag: documentTag(bytes) };
}

/** Returns the new tag; null unless the current one is `expected`. Calls must not overlap. */
export async function writeDocument(
  files: FileOperations,
  directory: string,
  name: string,
  bytes: Bytes,
  expected: string | null,
): Promise<string | null> {
  const current = await readDocument(files, directory, name);
  if ((current?.tag ?? null) !== expected) return null;
  if (bytes.length > maxDocumentBytes) throw new Error(`a document has more than ${maxDocumentBytes} bytes`);
  await replaceFile(files, join(directory, documentFile(name)), bytes);
  return documentTag(bytes);
}

function documentTag(bytes: Bytes): string {
  return createHash("sha256").update(bytes).digest().subarray(0, 12).toString("base64url");
}
