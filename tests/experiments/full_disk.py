"""A comparison on a disk that fills up after some rows, and has room again: `full_disk.py HOW PLAN STORE ROOM`.

HOW is "disk" (STORE is a small file system, made larger later) or "limit" (files may grow to a size, by the process's own
limit), of ROOM bytes. Writes JSON: what the two starts without room said, and which runs were told to be finished before.
"""

import json
import resource
import subprocess
import sys
from pathlib import Path

from rbrl.experiments import Plan, Progress, Store, StoreError, execute


class Told(Progress):
    """Collects what was finished."""

    def __init__(self):
        self.runs = []

    def finished(self, run, outcome):
        """Note the run."""
        self.runs.append([run.dataset, run.method, run.split])


def make_room(how, store):
    """Let the store grow again."""
    if how == "disk":
        subprocess.run(["mount", "-o", "remount,size=64m", str(store)], check=True)
    else:
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def start(plan, store):
    """Do the plan; return what was finished and what the error said."""
    told = Told()
    try:
        execute(plan, store, progress=told)
    except StoreError as error:
        return told.runs, str(error)
    return told.runs, ""


def main(how, plan, store, room):
    """Fill, try again, make room, finish; keep the rows at each stage."""
    plan, store = Plan.from_toml(plan), Path(store)
    if how == "limit":
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(room), most))
    first, second = start(plan, store), start(plan, store)
    kept = Store(store).rows()
    make_room(how, store)
    last = start(plan, store)
    rows = Store(store).rows()
    kept.to_pickle(f"{store}.kept")
    rows.to_pickle(f"{store}.rows")
    sys.stdout.write(json.dumps([first, second, last]))


if __name__ == "__main__":
    main(*sys.argv[1:])
