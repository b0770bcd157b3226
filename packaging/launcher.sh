#!/bin/sh
# The `strongroom` command with the Node beside it. A shell keeps an ignored SIGHUP (nohup), which Node resets at its start.
here=$(dirname "$(readlink -f "$0")")
# Other programs look for their helpers under these names.
case ${0##*/} in
*-strongroom) name=${0##*/}; set -- "${name%-strongroom}" "$@" ;;
esac
_hup=ignored; trap _hup= HUP; kill -HUP $$; trap - HUP; [ -z "$_hup" ] || export STRONGROOM_SIGHUP=ignored
STRONGROOM_INHERITED= _block=; [ ! -r /proc/$$/status ] || while read -r _k _v; do [ "$_k" != SigIgn: ] || STRONGROOM_INHERITED=$_v; done </proc/$$/status
for _f in /proc/$$/fd/*; do [ ! -e "$_f" ] || [ "$_f" -ef "$0" ] || STRONGROOM_INHERITED="$STRONGROOM_INHERITED ${_f##*/}"; done
export STRONGROOM_INHERITED
# Beside it: an empty node would run as a script that does nothing.
for file in "$here/node" "$here/strongroom.cjs"; do
  [ -s "$file" ] && continue
  echo "strongroom: $file is missing or damaged: install strongroom again" >&2; exit 1
done
[ -z "$_hup" ] || [ "$1" != run ] || ! env --block-signal=HUP true 2>/dev/null || _block="env --block-signal=HUP"
exec $_block "$here/node" -- "$here/strongroom.cjs" "$@"
