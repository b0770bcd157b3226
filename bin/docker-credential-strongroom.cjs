#!/bin/sh
":" //; exec node -- "$0" "$@"
/* `strongroom docker-credential` under the name by which docker looks for it; see strongroom.cjs. */
process.argv.splice(2, 0, "docker-credential");
require("./strongroom.cjs");
