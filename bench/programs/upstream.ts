/** An upstream of the broker: streams of events, one a second on each, bodies of any size, and tokens of the shortest life. */
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";

const setting = (name: string) => process.env[name] ?? "";
const tls = { cert: readFileSync(setting("BENCH_CERT")), key: readFileSync(setting("BENCH_KEY")) };
const chunk = Buffer.alloc(64 * 1024, "x");

/** Number of tokens that were issued. */
let issued = 0;

const server = createServer(tls, (req, res) => {
  req.resume();
  const [, kind, bytes = "0"] = (req.url ?? "").split("/");
  if (kind === "events") {
    res.writeHead(200, { "Content-Type": "text/event-stream" }).write("data: 0\n\n");
    const timer = setInterval(() => res.write("data: 1\n\n"), 1000);
    res.once("close", () => clearInterval(timer));
    return;
  }
  if (kind === "issued") return void res.end(`issued ${issued}\n`);
  if (kind === "token") {
    issued++;
    const tokens = { access_token: `access-${issued}`, refresh_token: `refresh-${issued}` };
    res.setHeader("Content-Type", "application/json");
    return void res.end(JSON.stringify({ ...tokens, token_type: "Bearer", expires_in: 1 }));
  }
  let left = Number(bytes);
  res.setHeader("Content-Length", left);
  const send = () => {
    while (left > 0) {
      const piece = chunk.subarray(0, Math.min(left, chunk.length));
      left -= piece.length;
      if (!res.write(piece)) return void res.once("drain", send);
    }
    res.end();
  };
  send();
});

server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
