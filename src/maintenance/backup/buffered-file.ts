/** New file that collects small writes into large ones. */
import { constants } from "node:fs";
import { noFollow, OpenFile } from "../../files/durable.js";

const bufferBytes = 2 ** 20;

export class BufferedFile {
  readonly #file: OpenFile;
  readonly #buffer = Buffer.allocUnsafeSlow(bufferBytes);
  #used = 0;

  private constructor(file: OpenFile) {
    this.#file = file;
  }

  /** Creates a private file that does not exist yet. */
  static async create(path: string): Promise<BufferedFile> {
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | noFollow;
    return new BufferedFile(await OpenFile.open(path, flags, 0o600));
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (bytes.length > bufferBytes - this.#used) await this.#flush();
    if (bytes.length > bufferBytes) return this.#file.writeFile(bytes);
    this.#buffer.set(bytes, this.#used);
    this.#used += bytes.length;
  }

  /** Writes the rest and makes the file's bytes durable. */
  async sync(): Promise<void> {
    await this.#flush();
    await this.#file.sync();
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  async #flush(): Promise<void> {
    await this.#file.writeFile(this.#buffer.subarray(0, this.#used));
    this.#used = 0;
  }
}
