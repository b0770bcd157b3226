/** Second storage engine, a Map: shows that the store interface does not depend on files. */
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { VaultError } from "../../src/errors.js";
import { blobFile } from "../../src/paths/file-name.js";
import { compareUtf8 } from "../../src/paths/secret-path.js";
import { blobTag } from "../../src/storage/blob-tag.js";
import {
  type Change,
  type CommitResult,
  type DocumentChange,
  documentChanged,
  type NamedDocument,
  type SecretStore,
  type Space,
  type StoredDocument,
  type StoredSnapshot,
  spaces,
} from "../../src/storage/secret-store.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import type { Bytes } from "../../workers/protocol.js";

export type Kept = {
  header: Bytes | null;
  blobs: Map<string, Bytes>;
  /** Blobs of the spaces beside the secrets, by space and path. */
  beside: Map<string, Bytes>;
  documents: Map<string, Bytes>;
  generations: number;
};

export function nothingKept(): Kept {
  return { header: null, blobs: new Map(), beside: new Map(), documents: new Map(), generations: 0 };
}

export class MemoryStore implements SecretStore {
  readonly vaultPath = "memory";
  readonly kept: Kept;
  readonly step: () => void;

  /** `step` is called before each change, and may throw. */
  constructor(kept: Kept, step: () => void = () => {}) {
    this.kept = kept;
    this.step = step;
  }

  async header(): Promise<Bytes | null> {
    return this.kept.header?.slice() ?? null;
  }

  async count(space: Space = "secrets"): Promise<number> {
    return this.#pathsIn(space).length;
  }

  async list(prefix: string, after: string, limit: number, space: Space = "secrets"): Promise<readonly string[]> {
    const paths = this.#pathsIn(space).sort(compareUtf8);
    const behind = (path: string) => after === "" || compareUtf8(path, after) > 0;
    return paths.filter((path) => path.startsWith(prefix) && behind(path)).slice(0, limit);
  }

  async read(path: string, first = Number.POSITIVE_INFINITY, space: Space = "secrets"): Promise<Bytes | null> {
    return this.#blobAt(space, path)?.slice(0, first) ?? null;
  }

  async commit(changes: readonly Change[]): Promise<CommitResult> {
    await this.beginChange();
    const refused = changes.findIndex((change) => !this.#holds(change));
    if (refused >= 0) return { committed: false, refused };
    for (const { space = "secrets", path, blob } of changes) {
      const [blobs, key] = this.#locate(space, path);
      if (blob === null) blobs.delete(key);
      else blobs.set(key, blob.slice());
    }
    return { committed: true };
  }

  async flush(): Promise<void> {}

  async startNewVault(header: Bytes, documents: readonly NamedDocument[] = []): Promise<string | null> {
    await this.beginChange();
    const before = this.kept.header === null ? null : `generation ${this.kept.generations}`;
    Object.assign(this.kept, nothingKept(), { header: header.slice(), generations: this.kept.generations + 1 });
    for (const { name, bytes } of documents) this.kept.documents.set(name, bytes.slice());
    return before;
  }

  async replaceHeader(header: Bytes, before: Bytes, document: DocumentChange | null = null): Promise<boolean> {
    await this.beginChange();
    if (this.kept.header === null || Buffer.compare(this.kept.header, before) !== 0) return false;
    if (document !== null) {
      const tag = (await this.readDocument(document.name))?.tag ?? null;
      if (tag !== document.expected) throw documentChanged();
      this.kept.documents.set(document.name, document.bytes.slice());
    }
    this.kept.header = header.slice();
    return true;
  }

  async readDocument(name: string): Promise<StoredDocument | null> {
    const bytes = this.kept.documents.get(name)?.slice();
    return bytes === undefined ? null : { bytes, tag: createHash("sha256").update(bytes).digest("base64url") };
  }

  async writeDocument(name: string, bytes: Bytes, expected: string | null): Promise<string | null> {
    await this.beginChange();
    if (((await this.readDocument(name))?.tag ?? null) !== expected) return null;
    this.kept.documents.set(name, bytes.slice());
    return (await this.readDocument(name))?.tag ?? null;
  }

  async snapshot(): Promise<StoredSnapshot> {
    await this.beginChange();
    const directory = temporaryDirectory();
    writeFileSync(join(directory, "header.json"), this.kept.header ?? "");
    for (const space of spaces) {
      for (const path of this.#pathsIn(space)) {
        const file = blobFile(join(directory, space), path);
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, this.#blobAt(space, path) ?? "");
      }
    }
    return { directory, count: this.kept.blobs.size };
  }

  async freeze(): Promise<StoredSnapshot> {
    throw new VaultError("UNAVAILABLE", "this store has no files");
  }

  async close(): Promise<void> {}

  protected async beginChange(): Promise<void> {
    await Promise.resolve();
    try {
      this.step();
    } catch (cause) {
      throw new VaultError("UNAVAILABLE", "injected", { cause });
    }
  }

  #locate(space: Space, path: string): [blobs: Map<string, Bytes>, key: string] {
    return space === "secrets" ? [this.kept.blobs, path] : [this.kept.beside, `${space}/${path}`];
  }

  #blobAt(space: Space, path: string): Bytes | undefined {
    const [blobs, key] = this.#locate(space, path);
    return blobs.get(key);
  }

  #pathsIn(space: Space): string[] {
    if (space === "secrets") return [...this.kept.blobs.keys()];
    const start = `${space}/`;
    return [...this.kept.beside.keys()].flatMap((key) => (key.startsWith(start) ? key.slice(start.length) : []));
  }

  #holds({ space = "secrets", path, expected }: Change): boolean {
    const blob = this.#blobAt(space, path);
    if (expected === undefined) return true;
    if (typeof expected === "string") return (expected === "present") === (blob !== undefined);
    return blob !== undefined && blobTag(blob) === expected.tag;
  }
}
