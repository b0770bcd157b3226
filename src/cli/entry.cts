/** Entry point of the `strongroom` command, behind `bin/strongroom.cjs`: what must run before the first ES module. */
import "./thread-pool.cjs";

void import("./main.js");
