#!/bin/sh
":" //; exec node -- "$0" "$@"
/* `strongroom age-plugin` under the name by which age looks for it; see strongroom.cjs. */
process.argv.splice(2, 0, "age-plugin");
require("./strongroom.cjs");
