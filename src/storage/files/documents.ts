/** Small documents of one vault: a file each, beside its header, replaced durably. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Bytes } from "../../../workers/protocol.js";
import { type FileOperations, readFileBytes, replaceFile } from "../../files/durable.js";
import { Semaphore } from "../../locks.js";
import { documentName, maxDocumentBytes, type StoredDocument } from "../secret-store.js";
import { cannotRead, cannotWrite } from "./errors.js";

const suffix = ".document";

export function isDocumentFile(name: string): boolean {
  return name.endsWith(suffix) && documentName.test(name.slice(0, -suffix.length));
}

export function documentFile(name: string): string {
  if (!documentName.test(name)) throw new Error(`invalid name of a document: ${name}`);
  return name + suffix;
}

export class Documents {
  readonly #files: FileOperations;
  readonly #directory: string;
  /** Writes run one at a time. */
  readonly #writes = new Semaphore(1);

  constructor(files: FileOperations, directory: string) {
    this.#files = files;
    this.#directory = directory;
  }

  /** See `SecretStore.readDocument`. */
  read(name: string): Promise<StoredDocument | null> {
    return this.#read(name).catch((error: unknown) => {
      throw cannotRead(error);
    });
  }

  /** See `SecretStore.writeDocument`. */
  write(name: string, bytes: Bytes, expected: string | null): Promise<string | null> {
    return this.#writes
      .run(() => this.#replace(name, bytes, expected))
      .catch((error: unknown) => {
        throw cannotWrite(error);
      });
  }

  async #read(name: string): Promise<StoredDocument | null> {
    const bytes = await readFileBytes(this.#files, this.#documentPath(name), maxDocumentBytes);
    return bytes && { bytes, tag: documentTag(bytes) };
  }

  async #replace(name: string, bytes: Bytes, expected: string | null): Promise<string | null> {
    const current = await this.#read(name);
    if ((current?.tag ?? null) !== expected) return null;
    if (bytes.length > maxDocumentBytes) throw new Error(`a document has more than ${maxDocumentBytes} bytes`);
    await replaceFile(this.#files, this.#documentPath(name), bytes);
    return documentTag(bytes);
  }

  #documentPath(name: string): string {
    return join(this.#directory, documentFile(name));
  }
}

function documentTag(bytes: Bytes): string {
  return createHash("sha256").update(bytes).digest().subarray(0, 12).toString("base64url");
}
