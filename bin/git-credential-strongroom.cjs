#!/bin/sh
":" //; exec node -- "$0" "$@"
/* `strongroom git-credential` under the name by which git looks for it; see strongroom.cjs. */
process.argv.splice(2, 0, "git-credential");
try {
	require("../dist/program/entry.cjs");
	if (process.listenerCount("uncaughtException") === 0) throw new Error(); // an empty file does nothing
} catch {
	process.stderr.write("strongroom: dist/program/entry.cjs is missing or damaged: install strongroom again\n");
	process.exitCode = 1;
}
