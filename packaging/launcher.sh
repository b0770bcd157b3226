#!/bin/sh
# The `strongroom` command with the Node beside it. A shell keeps an ignored SIGHUP (nohup), which Node resets at its start.
here=$(dirname "$(readlink -f "$0")")
hup=ignored; trap hup= HUP; kill -HUP $$; trap - HUP; [ -z "$hup" ] || export STRONGROOM_SIGHUP=ignored
exec "$here/node" -- "$here/../dist/program/entry.cjs" "$@"
