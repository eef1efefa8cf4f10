#!/bin/sh
# Run the tests with every Python from 3.11 on that this machine has: pythons.sh [arguments of make]
# Each in an environment of its own, .venv-3.N.
set -u
failed="" pythons=$("$(dirname "$0")/all_pythons.sh") || exit

for python in $pythons; do
    number=$("$python" -c 'import sys; print(sys.version_info[1])')
    echo "== Python 3.$number" >&2
    "${MAKE:-make}" --no-print-directory test VENV=".venv-3.$number" PYTHON="$python" "$@" || failed="$failed 3.$number"
done
[ -z "$failed" ] || { echo "failed with:$failed" >&2 && exit 1; }
