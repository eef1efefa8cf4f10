"""A comparison killed again and again at chosen moments of its store's transactions: `killed.py PLAN STORE KILLS SEED`.

Each life is a fork that kills itself, so that the packages are imported once. What a life told of its finished runs must
be in the store after it, whole, and stay as it is; a last life, undisturbed, is left to the caller. Writes the kills as
JSON: the moment, which transaction of the life it was, and how many runs that life had finished.
"""

import json
import os
import random
import signal
import sqlite3
import sys
import threading
import time
import traceback
from pathlib import Path

from rbrl.experiments import Plan, Progress, execute

MOMENTS = ("before it begins", "after a statement", "before the commit", "during the commit", "after the commit")
# Of a life: one begins the plan, then every run takes one to claim it and one to save it.
TRANSACTIONS = range(1, 14)
STATEMENTS = range(1, 5)


class Death:
    """When this process ends itself: at a moment of its n-th transaction."""

    def __init__(self, moment, transaction, chance):
        self.moment, self.transaction, self.chance = moment, transaction, chance
        self.statement = chance.choice(STATEMENTS)
        self.n_transactions = self.n_statements = 0
        self.commits = [0.001]

    def at(self, moment):
        """End the process if this is the moment."""
        if self.n_transactions == self.transaction and self.moment == moment:
            kill()

    def begins(self):
        """A transaction is about to begin."""
        self.n_transactions += 1
        self.n_statements = 0
        self.at("before it begins")

    def stated(self):
        """A statement was executed, the beginning of the transaction included."""
        self.n_statements += 1
        if self.n_statements == self.statement:
            self.at("after a statement")

    def commits_with(self, commit):
        """Commit; where it is the moment, with a thread that kills at any time while SQLite writes."""
        self.at("before the commit")
        if self.moment == "after a statement":
            self.at("after a statement")  # of a transaction that has fewer
        if self.n_transactions == self.transaction and self.moment == "during the commit":
            delay = self.chance.uniform(0, 1.5 * sum(self.commits) / len(self.commits))
            threading.Thread(target=kill, args=(delay,)).start()
        began = time.perf_counter()
        commit()
        self.commits.append(time.perf_counter() - began)
        self.at("after the commit")


def kill(delay=0.0):
    """End this process as the system does it."""
    time.sleep(delay)
    os.kill(os.getpid(), signal.SIGKILL)


def connect_with(death):
    """A stand-in for `sqlite3.connect` whose transactions are watched."""

    class Cursor(sqlite3.Cursor):
        def execute(self, sql, *values):
            if sql.startswith("BEGIN"):
                death.begins()
            super().execute(sql, *values)
            death.stated()
            return self

        def executemany(self, sql, *values):
            super().executemany(sql, *values)
            death.stated()
            return self

    class Connection(sqlite3.Connection):
        def cursor(self):
            return super().cursor(Cursor)

        def commit(self):
            death.commits_with(super().commit)

    connect = sqlite3.connect
    return lambda *args, **options: connect(*args, factory=Connection, **options)


class Log(Progress):
    """Tells a file what was finished: a write that is done outlives the process."""

    def __init__(self, path):
        self.descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def finished(self, run, outcome):
        """Note the run."""
        os.write(self.descriptor, f"{run.key}\n".encode())

    def failed(self, run, outcome):
        """No run of the plan fails by itself."""
        os.write(self.descriptor, b"failed\n")


def live(plan, store, log, death):
    """Do the plan in a fork until death; return whether it was killed."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    try:
        sqlite3.connect = connect_with(death)
        execute(plan, store, progress=Log(log))
    except Exception:  # noqa: BLE001  # a fork must end here, whatever happens
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def content(store):
    """What the store has: runs by key, and their tunings."""
    connection = sqlite3.connect(Path(store, "runs.sqlite"))
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        runs = connection.execute("SELECT runs.*, tune_key FROM runs LEFT JOIN current USING (key)").fetchall()
        folds = connection.execute("SELECT * FROM folds ORDER BY tune_key, point, fold").fetchall()
    finally:
        connection.close()
    tuned = {key: [fold for fold in folds if fold[0] == key] for key in {fold[0] for fold in folds}}
    return {run[0]: (run, tuned.get(run[-1])) for run in runs}


def main(plan, store, n_kills, seed):
    """Live and die, and check what is left each time."""
    plan, chance, log = Plan.from_toml(plan), random.Random(seed), Path(f"{store}.log")
    log.touch()
    kills, before, told = [], {}, []
    for i in range(n_kills):
        death = Death(MOMENTS[i % len(MOMENTS)], chance.choice(TRANSACTIONS), random.Random(seed + i))
        assert live(plan, store, log, death), f"the plan was finished after {i} kills"
        now = content(store) if Path(store, "runs.sqlite").exists() else {}
        lived = log.read_text().split()[len(told) :]
        assert "failed" not in lived
        assert not set(lived) & set(before), "a finished run was done again"
        assert set(lived) <= set(now), "a finished run was lost"
        quiet = [key for key in set(now) - set(before) - set(lived) if now[key][0][-1]]
        assert len(quiet) <= 1, "only the last run of a life can be saved and not told"
        assert {key: now.get(key) for key in before} == before, "a finished run was changed"
        assert all(len(folds or ()) == 4 for run, folds in now.values() if run[-1]), "a run without all its tuning"
        kills.append({"moment": death.moment, "transaction": death.transaction, "finished": len(lived)})
        before, told = now, told + lived
    sys.stdout.write(json.dumps(kills))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
