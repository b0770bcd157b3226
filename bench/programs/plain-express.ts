/** The bare server with plain Express 5: the cost of the framework alone. */
import { readFileSync } from "node:fs";
import express from "express";
import { listen, mustHave } from "./listen.js";

const body = readFileSync(mustHave("BENCH_BODY"));
const app = express();

app.get("/*any", (_req, res) => {
  res.set("Content-Type", "application/json; charset=utf-8").send(body);
});

listen(app);
