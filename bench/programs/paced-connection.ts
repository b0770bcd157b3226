/** One keep-alive HTTPS connection with at most one request at a time, on a bare TLS socket: cheap by the thousand. */
import { connect, type TLSSocket } from "node:tls";

/** `status` is 0 when the connection broke before the whole response was there. */
type Done = (status: number) => void;

export class PacedConnection {
  readonly #url: URL;
  #socket: TLSSocket | null = null;
  #head = "";
  /** Bytes of the body that are still missing; null while the head is incomplete. */
  #missing: number | null = null;
  #done: Done | null = null;

  constructor(url: string) {
    this.#url = new URL(url);
  }

  /** A broken connection is opened again by the next request. */
  send(bytes: string, done: Done): void {
    this.#done = done;
    this.#socket ??= this.#open();
    this.#socket.write(bytes);
  }

  close(): void {
    this.#socket?.destroy();
  }

  #open(): TLSSocket {
    const { hostname: host, port } = this.#url;
    const socket = connect({ host, port: Number(port), servername: "localhost", rejectUnauthorized: false });
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("error", () => {}); // followed by close
    socket.once("close", () => {
      this.#socket = null;
      this.#end(0);
    });
    return socket;
  }

  #take(chunk: Buffer): void {
    if (this.#missing === null) this.#takeHead(chunk);
    else this.#missing -= chunk.length;
    if (this.#missing !== null && this.#missing <= 0) this.#end(Number(this.#head.slice(9, 12)));
  }

  #takeHead(chunk: Buffer): void {
    this.#head += chunk.toString("latin1");
    const bodyAt = this.#head.indexOf("\r\n\r\n") + 4;
    if (bodyAt < 4) return;
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(this.#head)?.[1]);
    if (Number.isNaN(length))
      this.close(); // no server of the benchmark sends chunks
    else this.#missing = length - (this.#head.length - bodyAt);
  }

  #end(status: number): void {
    const done = this.#done;
    [this.#head, this.#missing, this.#done] = ["", null, null];
    done?.(status);
  }
}
