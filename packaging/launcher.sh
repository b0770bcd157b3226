#!/bin/sh
# The `strongroom` command with the Node beside it. A shell keeps an ignored SIGHUP (nohup), which Node resets at its start.
here=$(dirname "$(readlink -f "$0")")
# git and docker look for their helpers under these names.
case ${0##*/} in
*-credential-strongroom) name=${0##*/}; set -- "${name%-strongroom}" "$@" ;;
esac
hup=ignored; trap hup= HUP; kill -HUP $$; trap - HUP; [ -z "$hup" ] || export STRONGROOM_SIGHUP=ignored
# Beside it: an empty node would run as a script that does nothing.
for file in "$here/node" "$here/strongroom.cjs"; do
  [ -s "$file" ] && continue
  echo "strongroom: $file is missing or damaged: install strongroom again" >&2; exit 1
done
exec "$here/node" -- "$here/strongroom.cjs" "$@"
