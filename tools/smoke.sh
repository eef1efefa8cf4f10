#!/bin/sh
# Install the wheels of a folder into empty environments and use them: smoke.sh [FOLDER] [PYTHON...]
# With every Python from 3.11 on that this machine has, or those given; with the newest versions of what rbrl needs, and with
# the lowest that pyproject.toml allows where these have wheels for that Python.
set -u
here=$(cd "$(dirname "$0")" && pwd) dist=${1:-dist} failed=""
[ $# = 0 ] || shift
[ $# -gt 0 ] || { set -- $("$here/all_pythons.sh") && [ $# -gt 0 ]; } || exit 2
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$here/../src/rbrl/_version.py")
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
"$1" "$here/lowest_versions.py" >"$work/lowest.txt" && : >"$work/newest.txt" || exit

# try PYTHON VERSIONS: a line that says how it went
try() {
    environment="$work/environment" && rm -rf "$environment"
    "$1" -m venv "$environment" || return
    if ! "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: --find-links "$dist" \
        --constraint "$work/$2.txt" "rbrl[cli,data]==$version" >"$work/log" 2>&1; then
        # An old version may have no wheel for a Python that came after it: there it cannot be tried, which is no failure.
        [ "$2" = lowest ] && grep -q 'No matching distribution\|ResolutionImpossible' "$work/log" \
            && echo "cannot be had: $(grep -m 1 '^ERROR' "$work/log")" && return
        cat "$work/log" >&2
        return 1
    fi
    (cd "$work" && "$environment/bin/python" -W error::DeprecationWarning:rbrl "$here/smoke.py" && "$environment/bin/rbrl" --version)
}

for python in "$@"; do
    for versions in newest lowest; do
        name="$("$python" --version) with the $versions versions"
        answer=$(try "$python" "$versions") || failed="$failed $python($versions)"
        echo "$name: $(echo $answer)"
    done
done
[ -z "$failed" ] || { echo "failed:$failed" >&2 && exit 1; }
