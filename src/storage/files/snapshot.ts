/**
 * Owns a frozen picture of all secrets at one moment, taken while writes go on: hard links to the blobs, which are never
 * changed in place. A write or delete of a blob that the picture still lacks has it linked first.
 *
 *   vault/snapshot-0123456789abcdef/header.json
 *   vault/snapshot-0123456789abcdef/secrets/…    the tree as it was
 */
import { constants } from "node:fs";
import { dirname, join, relative } from "node:path";
import { systemCode } from "../../errors.js";
import { type FileOperations, missingAsNull, randomName } from "../../files/durable.js";
import { NotPlainFile } from "../../files/read-file.js";
import type { Generation } from "./generations.js";
import { blobFile } from "./tree-scan.js";

/** As many as the thread pool works on at once and a few that wait, so that writes get their turn. */
const linksAtOnce = 8;

export class Snapshot {
  readonly directory: string;
  /** How many secrets are in it, once it is complete. */
  count = 0;
  readonly #files: FileOperations;
  readonly #generation: Generation;
  readonly #pending: Set<string>;
  readonly #linking = new Map<string, Promise<void>>();
  readonly #made = new Map<string, Promise<unknown>>();
  #failure: unknown = null;

  /** `paths` are all secrets at this moment. */
  constructor(files: FileOperations, vaultPath: string, generation: Generation, paths: Iterable<string>) {
    this.#files = files;
    this.#generation = generation;
    this.#pending = new Set(paths);
    this.directory = join(vaultPath, `snapshot-${randomName()}`);
  }

  /** To be awaited before a blob is replaced or removed. It never fails: the snapshot does, not the write. */
  async keep(path: string): Promise<void> {
    if (this.#failure !== null) return;
    await (this.#pending.delete(path) ? this.#begin(path) : this.#linking.get(path));
  }

  /** @throws what made the snapshot fail; nothing of it is left then. */
  async complete(): Promise<void> {
    try {
      await this.#directoryOf(join(this.directory, "secrets"));
      await this.#link(join(this.#generation.directory, "header.json"));
      await Promise.all(Array.from({ length: linksAtOnce }, () => this.#linkPending()));
      await this.#linked();
      if (this.#failure !== null) throw this.#failure;
    } catch (error) {
      this.#failure = error;
      await this.#linked();
      await this.#files.rm(this.directory, { recursive: true, force: true }).catch(() => {}); // or at the next start
      throw error;
    }
  }

  async #linkPending(): Promise<void> {
    for (const path of this.#pending) await this.keep(path);
  }

  /** What a write has begun to link is no longer pending, and not yet in the snapshot. */
  async #linked(): Promise<void> {
    await Promise.all(this.#linking.values());
  }

  #begin(path: string): Promise<void> {
    const fail = (error: unknown) => {
      this.#failure = error;
    };
    const linking = this.#linkBlob(path)
      .catch(fail)
      .finally(() => this.#linking.delete(path));
    this.#linking.set(path, linking);
    return linking;
  }

  /** A file that is gone was removed at the very moment of the snapshot. */
  async #linkBlob(path: string): Promise<void> {
    const file = blobFile(this.#generation.secrets, path);
    try {
      if (!(await this.#files.lstat(file)).isFile()) throw new NotPlainFile(file);
      await this.#link(file);
      this.count++;
    } catch (error) {
      if (systemCode(error) !== "ENOENT" || (await missingAsNull(this.#files.lstat(file))) !== null) throw error;
    }
  }

  async #link(file: string): Promise<void> {
    const copy = join(this.directory, relative(this.#generation.directory, file));
    await this.#directoryOf(dirname(copy));
    await this.#linkOrCopy(file, copy);
  }

  async #linkOrCopy(file: string, copy: string): Promise<void> {
    try {
      await this.#files.link(file, copy);
    } catch (error) {
      if (!cannotLink.has(systemCode(error) ?? "")) throw error;
      await this.#files.copyFile(file, copy, constants.COPYFILE_EXCL);
    }
  }

  #directoryOf(directory: string): Promise<unknown> {
    let making = this.#made.get(directory);
    if (making === undefined) {
      making = this.#files.mkdir(directory, { recursive: true, mode: 0o700 });
      this.#made.set(directory, making);
    }
    return making;
  }
}

/** File systems without hard links, or with too many on one file. */
const cannotLink = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK", "EXDEV"]);
