/**
 * Point-in-time snapshot of all secrets, taken while writes continue: hard links to the blobs, which are never changed
 * in place. A write or delete links the old blob first if the snapshot lacks it.
 *
 *   vault/snapshot-0123456789abcdef/header.json
 *   vault/snapshot-0123456789abcdef/secrets/…    the tree as it was
 */
import { constants } from "node:fs";
import { dirname, join, relative } from "node:path";
import { systemCode } from "../../errors.js";
import { type FileOperations, missingAsNull, randomName, writeNew } from "../../files/durable.js";
import { NotPlainFile } from "../../files/read-file.js";
import { removeTree } from "../../files/remove-tree.js";
import { type Generation, headerFile } from "./generations.js";
import { blobFile } from "./tree-scan.js";

/** The thread pool's 4 and a few more; leaves room for writes. */
const linksAtOnce = 8;

export class Snapshot {
  readonly directory: string;
  /** Number of secrets in it, once complete. */
  count = 0;
  readonly #files: FileOperations;
  readonly #generation: Generation;
  readonly #header: Uint8Array;
  readonly #pending: Set<string>;
  readonly #linking = new Map<string, Promise<void>>();
  readonly #made = new Map<string, Promise<void>>();
  #failure: unknown = null;

  /** `paths`: all secrets at this moment; `header`: the vault's header, without which they may not open. */
  constructor(
    files: FileOperations,
    vaultPath: string,
    generation: Generation,
    paths: Iterable<string>,
    header: Uint8Array,
  ) {
    this.#files = files;
    this.#header = header;
    this.#generation = generation;
    this.#pending = new Set(paths);
    this.directory = join(vaultPath, `snapshot-${randomName()}`);
  }

  /** Must be awaited before a blob is replaced or removed. Never rejects: the snapshot fails, not the write. */
  async keep(path: string): Promise<void> {
    if (this.#failure !== null) return;
    await (this.#pending.delete(path) ? this.#begin(path) : this.#linking.get(path));
  }

  /** @throws the first failure; nothing of the snapshot is left then. */
  async complete(): Promise<void> {
    try {
      await this.#directoryOf(join(this.directory, "secrets"));
      await writeNew(this.#files, join(this.directory, headerFile), this.#header, 0o600);
      await Promise.all(Array.from({ length: linksAtOnce }, () => this.#linkPending()));
      await this.#linked();
      if (this.#failure !== null) throw this.#failure;
    } catch (error) {
      this.#failure = error;
      await this.#linked();
      await removeTree(this.#files, this.directory).catch(() => {}); // or at the next start
      throw error;
    }
  }

  async #linkPending(): Promise<void> {
    for (const path of this.#pending) await this.keep(path);
  }

  /** Waits for the links that writes have begun: neither pending nor in the snapshot yet. */
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

  /** A missing file was removed at the moment of the snapshot. */
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

  #directoryOf(directory: string): Promise<void> {
    let making = this.#made.get(directory);
    if (making === undefined) {
      making = this.#make(directory);
      this.#made.set(directory, making);
    }
    return making;
  }

  /** Not `recursive`: Node then reports a read-only disk as ENOENT. */
  async #make(directory: string): Promise<void> {
    if (directory !== this.directory) await this.#directoryOf(dirname(directory));
    await this.#files.mkdir(directory, { mode: 0o700 });
  }
}

/** Errors of file systems without hard links, or with too many on one file. */
const cannotLink = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK", "EXDEV"]);
