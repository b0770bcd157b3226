/**
 * A disk whose power can be cut: an ext4 file system on a loop device, and a copy of what had reached that device.
 *
 *   tmpfs ▸ outer.img ▸ loop ▸ ext4 "outer" ▸ disk-N.img ▸ loop ▸ ext4, where the server's home is
 *
 * The copy must be the disk at one moment. dmsetup suspend would do that, but many kernels come without the device
 * mapper; stopping the server does not stop the journal's and the page cache's own writing. So the disk is a file on a
 * file system of its own, and that outer one is frozen: from then on every write of the loop device waits, while
 * nothing of the inner file system is flushed, as a freeze of itself would do. What the loop device took before is in
 * the file, what only the page cache of the inner file system knows is not.
 *
 * Only a sync may save data, so the options are commit=600 (the journal would commit every 5 s by itself) and noauto_da_alloc
 * (ext4 would flush a file that is renamed over another, and so hide a missing sync); the page cache begins to write
 * back after 30 s, and no server here lives as long. Delayed allocation is ext4's default and stays on: without it,
 * data=ordered would write a file's bytes along with any commit.
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import type { ServerProcess } from "../../tools/rig/process.js";
import { canRun, mount, mustRun, unmount, whyNoMounts } from "../support/mounts.js";

/** Why such a disk is not possible here; null when it is. */
export function whyNoDisk(): string | null {
  if (!["mkfs.ext4", "fsfreeze", "losetup"].every((tool) => canRun(tool, "-V")))
    return "needs e2fsprogs and util-linux";
  return whyNoMounts() ?? (canRun("losetup", "--find") ? null : "needs loop devices");
}

export class Disk {
  /** The mount point. */
  readonly directory: string;
  readonly #outer: string;
  readonly #copy: string;
  #number = 1;

  /** An empty disk, unmounted when the test ends. */
  constructor() {
    const base = temporaryDirectory();
    const tmpfs = join(base, "tmpfs");
    this.#outer = join(base, "outer");
    this.directory = join(base, "inner");
    for (const directory of [tmpfs, this.#outer, this.directory]) mkdirSync(directory);
    mount("tmpfs", tmpfs, "-t", "tmpfs", "-o", "size=256m,mode=700");
    this.#copy = join(tmpfs, "copy.img");
    const image = join(tmpfs, "outer.img");
    makeFileSystem(image, 128, "-O", "^has_journal");
    mount(image, this.#outer, "-o", "loop");
    makeFileSystem(this.#image, 48);
    this.#switchOn();
  }

  /** Copies the disk as it is now. Synchronous: so this process sends and receives nothing until it is done. */
  cutPower(): void {
    mustRun("fsfreeze", "--freeze", this.#outer);
    try {
      mustRun("cp", "--sparse=always", this.#image, this.#copy);
    } finally {
      mustRun("fsfreeze", "--unfreeze", this.#outer);
    }
  }

  /**
   * Cuts the power of a server whose home is on the disk. Stops the server first: a sync between here and the freeze could
   * only hide a loss. Then kills it, and waits, because its disk is mounted again.
   */
  async cutPowerUnder(server: ServerProcess): Promise<void> {
    server.child.kill("SIGSTOP");
    this.cutPower();
    server.child.kill("SIGKILL");
    await server.ended;
    this.restorePower();
  }

  /** Mounts the copy, which replays the journal. Every process that used the disk must have ended. */
  restorePower(): void {
    unmount(this.directory);
    rmSync(this.#image);
    this.#number++; // a new file, since the old one's loop device may still exist
    mustRun("cp", "--sparse=always", this.#copy, this.#image);
    this.#switchOn();
  }

  get #image(): string {
    return join(this.#outer, `disk-${this.#number}.img`);
  }

  #switchOn(): void {
    mount(this.#image, this.directory, "-t", "ext4", "-o", "loop,commit=600,noauto_da_alloc,data=ordered");
  }
}

function makeFileSystem(image: string, megabytes: number, ...options: readonly string[]): void {
  mustRun("truncate", `--size=${megabytes}M`, image);
  mustRun("mkfs.ext4", "-q", "-F", "-b", "4096", ...options, image);
}
