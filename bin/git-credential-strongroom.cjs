#!/bin/sh
":" //; exec node -- "$0" "$@"
/* `strongroom git-credential` under the name by which git looks for it; see strongroom.cjs. */
process.argv.splice(2, 0, "git-credential");
require("./strongroom.cjs");
