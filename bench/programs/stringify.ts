/** A bare server that does JSON.stringify for each request: the minimum cost of a list. */
import { readFileSync } from "node:fs";
import { listen, mustHave } from "./listen.js";

const entries: unknown = JSON.parse(readFileSync(mustHave("BENCH_BODY"), "utf8"));

listen((req, res) => {
  req.resume();
  const body = Buffer.from(JSON.stringify(entries));
  res.writeHead(200, { "Content-Type": "application/json; charset=utf-8", "Content-Length": body.length }).end(body);
});
