/**
 * The bare server with a sealed body that a second thread, which alone has the key, opens for each request: the minimum
 * cost of a key thread.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { listen, mustHave } from "./listen.js";

type Box = Uint8Array<ArrayBuffer>;

if (isMainThread) serve();
else openAll();

function serve(): void {
  const thread = new Worker(new URL(import.meta.url));
  const waiting: ((body: Box) => void)[] = []; // the thread responses in the order of the messages
  thread.on("message", (body: Box) => waiting.shift()?.(body));
  listen((req, res) => {
    req.resume();
    req.once("end", () => {
      waiting.push((body) => {
        res
          .writeHead(200, { "Content-Type": "application/json; charset=utf-8", "Content-Length": body.length })
          .end(body);
      });
      thread.postMessage("open");
    });
  });
}

function openAll(): void {
  const [key, nonce] = [randomBytes(32), randomBytes(12)];
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  const ciphertext = Buffer.concat([cipher.update(readFileSync(mustHave("BENCH_BODY"))), cipher.final()]);
  const tag = cipher.getAuthTag();
  parentPort?.on("message", () => {
    const decipher = createDecipheriv("aes-256-gcm", key, nonce).setAuthTag(tag);
    const body = new Uint8Array(decipher.update(ciphertext)); // an ArrayBuffer of its own, to be transferred
    decipher.final();
    parentPort?.postMessage(body, [body.buffer]);
  });
}
