#!/bin/sh
# Make or update the environment that `make` uses: environment.sh FOLDER PYTHON [lowest|newest [EXTRA]]
# With uv where it is installed, otherwise with venv and pip. One that was interrupted while new is made afresh.
# With "lowest", everything that pyproject.toml names is installed in the lowest version it allows.
# The compiled core goes into the source tree; where none can be made, the plain loops serve, and a line says so.
set -eu
venv=$1 python=$2 versions=${3:-newest} extra=${4:-dev} unfinished=$1/.unfinished

say() { echo "$@" >&2; }
recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# install COMMAND...: the package with the given installer
install() {
    if [ "$versions" = lowest ]; then
        "$venv/bin/python" tools/lowest_versions.py >"$venv/constraints.txt" || return
        set -- "$@" --constraint "$venv/constraints.txt"
    fi
    "$@" -e ".[$extra]"
}

with_uv() {
    recent "$python" || python='>=3.11'
    [ -x "$venv/bin/python" ] || uv venv --quiet --allow-existing --python "$python" "$venv" || return
    install uv pip install --quiet --reinstall-package rbrl --python "$venv/bin/python"
}

with_pip() {
    if ! recent "$python"; then
        say "rbrl needs Python 3.11 or newer; $python is older or missing. Name another: make PYTHON=python3.12 ..."
        exit 2
    fi
    if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1 && ! "$python" -m venv "$venv"; then
        say "$python cannot make environments: install its venv module (python3-venv on Debian), or uv."
        exit 2
    fi
    # Python compiles a module when it is first imported: most modules of the dependencies never are.
    install "$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-compile
}

if [ -e "$unfinished" ]; then rm -rf "$venv"; fi
if [ -e "$venv" ]; then doing=updating; else doing="setting up" && mkdir -p "$venv" && touch "$unfinished"; fi

if command -v uv >/dev/null 2>&1; then
    say "$doing $venv with uv (once)"
    with_uv || { say "uv could not; now with pip" && python=$2 && with_pip; }
else
    say "$doing $venv with pip (once; a minute or two)"
    with_pip
fi
check='import sys, warnings
warnings.showwarning = lambda message, *where: print("rbrl:", message, file=sys.stderr)
import rbrl._loops'
"$venv/bin/python" -c "$check" || { say "rbrl cannot be imported in $venv" && exit 1; }
rm -f "$unfinished"
touch "$venv/.ready"
