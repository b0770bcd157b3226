#!/usr/bin/env node
/** Owns the beginning of the `strongroom` command: what must come before the first ES module. */
import "./thread-pool.cjs";

void import("./main.js");
