/** Entry point of the `strongroom` command, behind `bin/strongroom.cjs`: the thread pool's size goes before all else. */
import "./thread-pool.cjs";
import "./crash.cjs";

void import("./main.js").then(({ isWhole }) => {
  if (!isWhole) throw new Error();
});
