#!/usr/bin/env node
/** Entry point of the `strongroom` command: what must run before the first ES module. */
import "./thread-pool.cjs";

void import("./main.js");
