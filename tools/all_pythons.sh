#!/bin/sh
# Print every Python from 3.11 on that this machine has, one of each minor version: those on the path, then those of pyenv.
set -u
seen=" "
for python in $(seq -f 'python3.%g' 11 20) "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python; do
    number=$("$python" -c 'import sys; print(sys.version_info[1] if sys.version_info >= (3, 11) else "")' 2>/dev/null)
    case "$seen" in *" $number "*) continue ;; esac
    [ -n "$number" ] || continue
    seen="$seen$number "
    echo "$python"
done
[ "$seen" != " " ] || { echo "no Python from 3.11 on was found" >&2 && exit 2; }
