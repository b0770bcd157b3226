/** Second storage engine, a Map: shows that the store interface does not depend on files. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { VaultError } from "../../src/errors.js";
import { compareUtf8 } from "../../src/paths/secret-path.js";
import { blobFile } from "../../src/storage/files/tree-scan.js";
import type { SecretStore, StoredSnapshot } from "../../src/storage/secret-store.js";
import type { Bytes } from "../../workers/protocol.js";
import { temporaryDirectory } from "./clean-up.js";

export type Kept = { header: Bytes | null; blobs: Map<string, Bytes>; generations: number };

export class MemoryStore implements SecretStore {
  readonly vaultPath = "memory";
  readonly kept: Kept;
  readonly step: () => void;

  /** `step` is called before each change, and may throw. */
  constructor(kept: Kept, step: () => void = () => {}) {
    this.kept = kept;
    this.step = step;
  }

  get header(): Bytes | null {
    return this.kept.header;
  }

  get count(): number {
    return this.kept.blobs.size;
  }

  list(prefix: string, after: string, limit: number): readonly string[] {
    const paths = [...this.kept.blobs.keys()].sort(compareUtf8);
    const behind = (path: string) => after === "" || compareUtf8(path, after) > 0;
    return paths.filter((path) => path.startsWith(prefix) && behind(path)).slice(0, limit);
  }

  async read(path: string, first = Number.POSITIVE_INFINITY): Promise<Bytes | null> {
    return this.kept.blobs.get(path)?.slice(0, first) ?? null;
  }

  async write(path: string, blob: Bytes): Promise<void> {
    await this.#beginChange();
    this.kept.blobs.set(path, blob.slice());
  }

  async remove(path: string): Promise<boolean> {
    await this.#beginChange();
    return this.kept.blobs.delete(path);
  }

  async startNewVault(header: Bytes): Promise<string | null> {
    await this.#beginChange();
    const before = this.kept.header === null ? null : `generation ${this.kept.generations}`;
    Object.assign(this.kept, { header: header.slice(), blobs: new Map(), generations: this.kept.generations + 1 });
    return before;
  }

  async snapshot(): Promise<StoredSnapshot> {
    await this.#beginChange();
    const directory = temporaryDirectory();
    writeFileSync(join(directory, "header.json"), this.kept.header ?? "");
    for (const [path, blob] of this.kept.blobs) {
      const file = blobFile(join(directory, "secrets"), path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, blob);
    }
    return { directory, count: this.count };
  }

  async close(): Promise<void> {}

  async #beginChange(): Promise<void> {
    await Promise.resolve();
    try {
      this.step();
    } catch (cause) {
      throw new VaultError("UNAVAILABLE", "made to fail", { cause });
    }
  }
}
