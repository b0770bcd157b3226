#!/bin/sh
":" //; exec node -- "$0" "$@"
/*
 * The `strongroom` command: a shell script, whose second line JavaScript reads as a string and a comment. Without the
 * `--` Node would read flags behind the command's name as its own: `run --env-file FILE` then sets NODE_OPTIONS from it.
 */
require("../dist/src/cli/entry.cjs");
