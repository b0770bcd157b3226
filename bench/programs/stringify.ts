/** A bare server that keeps its answer as objects and does JSON.stringify for each request: what any list must cost. */
import { readFileSync } from "node:fs";
import { listen, mustHave } from "./listen.js";

const entries: unknown = JSON.parse(readFileSync(mustHave("BENCH_BODY"), "utf8"));

listen((req, res) => {
  req.resume();
  const body = Buffer.from(JSON.stringify(entries));
  res.writeHead(200, { "Content-Type": "application/json; charset=utf-8", "Content-Length": body.length }).end(body);
});
