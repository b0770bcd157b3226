#!/bin/sh
":" //; _c= _skip= _quiet=; for _a; do case $_skip$_a in 1*) _skip=;; --home|--address|--token-file|--cacert|--timeout) _skip=1;; -*) ;; *) _c=$_a; break;; esac; done
":" //; _front() { read -r _ _ _ _ _g _ _ _t _ </proc/$$/stat && [ "$_g" = "$_t" ]; }
":" //; _stop() { stty "$_tty"; trap - TSTP; kill -TSTP $$; trap _stop TSTP; }
":" //; case $_c in get|put|set|otp|generate|describe|ls|find|mv|cp|rm|trash|history|undo|import|export|transit|init|unlock|lock|passphrase|key|rotate-key|token|use|approve|audit|doctor|prove|backup|restore|migrate|shutdown) [ ! -t 0 ] || [ -p /proc/$$/fd/1 ] || ! _front || ! _tty=$(stty -g) || ! stty -echo || { _quiet=1; trap _stop TSTP; };; esac 2>/dev/null
":" //; _hup=ignored; trap _hup= HUP; kill -HUP $$; trap - HUP; [ -z "$_hup" ] || export STRONGROOM_SIGHUP=ignored
":" //; STRONGROOM_INHERITED= _block=; [ ! -r /proc/$$/status ] || while read -r _k _v; do [ "$_k" != SigIgn: ] || STRONGROOM_INHERITED=$_v; done </proc/$$/status
":" //; for _f in /proc/$$/fd/*; do [ ! -e "$_f" ] || [ "$_f" -ef "$0" ] || STRONGROOM_INHERITED="$STRONGROOM_INHERITED ${_f##*/}"; done
":" //; export STRONGROOM_INHERITED
":" //; [ -z "$_quiet" ] || { node -- "$0" "$@" </dev/tty & _p=$!; trap : INT QUIT; trap 'kill -TERM $_p' TERM; trap 'kill -HUP $_p' HUP; while wait $_p; _s=$?; kill -0 $_p 2>/dev/null; do :; done; ! _front || stty "$_tty" 2>/dev/null; trap - INT QUIT TERM HUP TSTP; case $_s in 129|130|131|143) kill -$((_s-128)) $$;; esac; exit $_s; }
":" //; [ -z "$_hup" ] || [ "$1" != run ] || ! env --block-signal=HUP true 2>/dev/null || _block="env --block-signal=HUP"
":" //; exec $_block node -- "$0" "$@"
/*
 * The `strongroom` command: a shell script, whose first lines JavaScript reads as strings and comments. They find out what
 * Node resets at its start or marks to be closed: signals that are ignored, as by nohup, and open descriptors, but for that of
 * this file; see src/cli/kit/programs/inherited.ts. For `run`, a hang-up is blocked until Node can ignore it. The names begin
 * with _, since the command gets them where they are variables already. Without the `--` Node would read flags behind the
 * command's name as its own: `run --env-file FILE` then sets NODE_OPTIONS from it.
 *
 * A command that may ask for a secret gets a terminal without echo before Node begins, which takes long enough to type in, and
 * this shell stays to give the echo back, when Node ends or both are suspended; Node gets the terminal by name, since a shell
 * gives what it starts with & no standard input of its own. It does not do so for what gives the terminal to another program,
 * nor before a pipe, whose reader, such as a pager, may have the terminal, nor in the background, where a change of the terminal
 * would stop it.
 */
try {
	require("../dist/program/entry.cjs");
	if (process.listenerCount("uncaughtException") === 0) throw new Error(); // an empty file does nothing
} catch {
	process.stderr.write("strongroom: dist/program/entry.cjs is missing or damaged: install strongroom again\n");
	process.exitCode = 1;
}
