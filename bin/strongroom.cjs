#!/bin/sh
":" //; hup=ignored; trap hup= HUP; kill -HUP $$; trap - HUP; [ -z "$hup" ] || export STRONGROOM_SIGHUP=ignored
":" //; exec node -- "$0" "$@"
/*
 * The `strongroom` command: a shell script, whose second and third line JavaScript reads as strings and comments. The
 * second finds out whether SIGHUP is ignored (nohup), which a shell keeps and Node resets at its start. Without the
 * `--` Node would read flags behind the command's name as its own: `run --env-file FILE` then sets NODE_OPTIONS from it.
 */
try {
	require("../dist/program/entry.cjs");
	if (process.listenerCount("uncaughtException") === 0) throw new Error(); // an empty file does nothing
} catch {
	process.stderr.write("strongroom: dist/program/entry.cjs is missing or damaged: install strongroom again\n");
	process.exitCode = 1;
}
