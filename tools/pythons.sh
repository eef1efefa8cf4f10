#!/bin/sh
# Run the tests with every Python from 3.11 on that this machine has: pythons.sh [arguments of make]
# Those on the path and those of pyenv; each in an environment of its own, .venv-3.N.
set -u
failed="" seen=" "

minor() { "$1" -c 'import sys; print(sys.version_info[1] if sys.version_info >= (3, 11) else "")' 2>/dev/null; }

for python in $(seq -f 'python3.%g' 11 20) "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python; do
    number=$(minor "$python")
    case "$seen" in *" $number "*) continue ;; esac
    [ -n "$number" ] || continue
    seen="$seen$number "
    echo "== Python 3.$number" >&2
    "${MAKE:-make}" --no-print-directory test VENV=".venv-3.$number" PYTHON="$python" "$@" || failed="$failed 3.$number"
done
[ "$seen" != " " ] || { echo "no Python from 3.11 on was found" >&2 && exit 2; }
[ -z "$failed" ] || { echo "failed with:$failed" >&2 && exit 1; }
