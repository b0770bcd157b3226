/** A bare node:https server that sends the same bytes for every request: the minimum cost of an HTTPS response. */
import { readFileSync } from "node:fs";
import { listen, mustHave } from "./listen.js";

const body = readFileSync(mustHave("BENCH_BODY"));
const headers = { "Content-Type": "application/json; charset=utf-8", "Content-Length": body.length };

listen((req, res) => {
  req.resume();
  req.once("end", () => res.writeHead(200, headers).end(body));
});
