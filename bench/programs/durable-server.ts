/** The bare server with a durable replace of each body: the minimum cost of an HTTPS put. */
import { join } from "node:path";
import { replaceDurably } from "./durable-replace.js";
import { listen, mustHave } from "./listen.js";

const directory = mustHave("BENCH_DIRECTORY");
const response = Buffer.from(JSON.stringify({ ok: true }));
const headers = { "Content-Type": "application/json; charset=utf-8", "Content-Length": response.length };

listen((req, res) => {
  const pieces: Buffer[] = [];
  req.on("data", (piece: Buffer) => pieces.push(piece));
  req.once("end", async () => {
    await replaceDurably(join(directory, encodeURIComponent(req.url ?? "")), Buffer.concat(pieces));
    res.writeHead(200, headers).end(response);
  });
});
