"""Run the benchmarks, each in a process of its own: ``python -m studies.benchmarks [NAME ...]``, all of them without a name.

A benchmark is a folder with a ``__main__.py`` that answers one question and rewrites its ``results.md``.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(wanted):
    names = sorted(path.parent.name for path in HERE.glob("*/__main__.py"))
    unknown = sorted(set(wanted) - set(names))
    if unknown:
        print(f"No benchmark is called {', '.join(unknown)}. There are: {', '.join(names)}.", file=sys.stderr)
        return 2
    failed = [name for name in wanted or names if run(name)]
    if failed:
        print(f"These failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def run(name):
    print(f"== {name}", flush=True)
    return subprocess.run([sys.executable, "-m", f"studies.benchmarks.{name}"], cwd=HERE.parents[1]).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
