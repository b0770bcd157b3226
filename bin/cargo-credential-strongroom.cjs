#!/bin/sh
":" //; exec node -- "$0" "$@"
/* `strongroom cargo-credential` under the name by which cargo looks for it; see strongroom.cjs. */
process.argv.splice(2, 0, "cargo-credential");
require("./strongroom.cjs");
