#!/bin/sh
":" //; _hup=ignored; trap _hup= HUP; kill -HUP $$; trap - HUP; [ -z "$_hup" ] || export STRONGROOM_SIGHUP=ignored
":" //; STRONGROOM_INHERITED= _block=; [ ! -r /proc/$$/status ] || while read -r _k _v; do [ "$_k" != SigIgn: ] || STRONGROOM_INHERITED=$_v; done </proc/$$/status
":" //; for _f in /proc/$$/fd/*; do [ ! -e "$_f" ] || [ "$_f" -ef "$0" ] || STRONGROOM_INHERITED="$STRONGROOM_INHERITED ${_f##*/}"; done
":" //; export STRONGROOM_INHERITED
":" //; [ -z "$_hup" ] || [ "$1" != run ] || ! env --block-signal=HUP true 2>/dev/null || _block="env --block-signal=HUP"
":" //; exec $_block node -- "$0" "$@"
/*
 * The `strongroom` command: a shell script, whose first lines JavaScript reads as strings and comments. They find out what
 * Node resets at its start or marks to be closed: signals that are ignored, as by nohup, and open descriptors, but for that of
 * this file; see src/cli/kit/programs/inherited.ts. For `run`, a hang-up is blocked until Node can ignore it. The names begin
 * with _, since the command gets them where they are variables already. Without the `--` Node would read flags behind the
 * command's name as its own: `run --env-file FILE` then sets NODE_OPTIONS from it.
 */
try {
	require("../dist/program/entry.cjs");
	if (process.listenerCount("uncaughtException") === 0) throw new Error(); // an empty file does nothing
} catch {
	process.stderr.write("strongroom: dist/program/entry.cjs is missing or damaged: install strongroom again\n");
	process.exitCode = 1;
}
