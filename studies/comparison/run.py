"""Run every cell in a process of its own, with a time limit; cells that have rows are skipped."""

import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from rbrl import __version__, datasets
from rbrl.datasets import CARDS
from studies.comparison import rows, rules
from studies.comparison.cell import do_cell
from studies.comparison.methods import BY_NAME, METHODS
from studies.comparison.tasks import Task, make_task

POLL_INTERVAL = 0.2
TICKS = os.sysconf("SC_CLK_TCK")
Cell = tuple[str, int, str]


def cells() -> Iterator[Cell]:
    """Yield (data set, split, method) in the order of the run: the largest come last and are left out first."""
    order = rules.cost_order()
    few, many = (
        [name for name in order if (CARDS[name].n_labels > rules.MANY_LABELS) == is_many] for is_many in (False, True)
    )
    for is_slow, part in ((False, few), (False, many), (True, few)):
        for split in range(rules.SPLITS):
            for dataset in part:
                yield from ((dataset, split, method.name) for method in METHODS if method.is_slow == is_slow)


class Child:
    """A running cell."""

    def __init__(self, cell: Cell, task: Task) -> None:
        context = get_context("fork")  # the child has data and imports at once
        self.cell, (self.answers, theirs) = cell, context.Pipe(duplex=False)
        self.process = context.Process(target=_child, args=(cell, task, theirs))
        self.process.start()
        theirs.close()

    def poll(self) -> list[dict[str, Any]] | None:
        """Return its rows if it has ended or exceeds the limit, which ends it; None otherwise."""
        limit = rules.BUDGET_SECONDS * rules.HARD_LIMIT
        if self.answers.poll(POLL_INTERVAL):
            try:
                status, result = self.answers.recv()
            except EOFError:
                self.process.join()
                status, result = "failed", f"the process ended with code {self.process.exitcode}"
        elif group_seconds(self.process.pid or 0) > limit:
            status, result = "failed", f"over budget: more than {limit:.0f} s"
        else:
            return None
        self.end()
        dataset, split, method = self.cell
        found = (
            result
            if status == "ok"
            else [{"variant": one, "status": status, "reason": result} for one in rules.VARIANTS]
        )
        return [{"dataset": dataset, "split": split, "method": method, "version": __version__, **row} for row in found]

    def end(self) -> None:
        """End the process and whatever it started."""
        assert self.process.pid  # group 0 would be our own
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.join()


def _child(cell: Cell, task: Task, answers: Connection) -> None:
    os.setpgid(0, 0)
    try:
        found = do_cell(BY_NAME[cell[2]], task)
    except Exception as error:  # noqa: BLE001  # a method may raise anything, and that is its result
        answers.send(("failed", f"{type(error).__name__}: {error}"[:300].replace("\n", " ")))
    else:
        answers.send(("ok", found))
    answers.close()


def group_seconds(group: int) -> float:
    """Return the processor seconds of the processes of a group, including their finished children."""
    ticks = 0
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                fields = (place / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group:
                ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS


@lru_cache(maxsize=2)
def _loaded(dataset: str) -> datasets.Dataset:
    return datasets.load(dataset)


@lru_cache(maxsize=2)
def _task(dataset: str, split: int) -> Task:
    return make_task(dataset, split, _loaded(dataset))


def more_rows() -> list[Cell]:
    """Return the cells of the study of more training rows: the largest data sets without many labels."""
    order = [name for name in rules.cost_order() if CARDS[name].n_labels <= rules.MANY_LABELS]
    largest = sorted(order, key=lambda name: CARDS[name].n_samples)[-rules.MORE_ROWS_DATASETS :]
    return [(dataset, 0, method.name) for dataset in largest for method in METHODS if not method.is_slow]


def wider_searches() -> list[Cell]:
    """Return the cells of the study of wider searches: the first split, methods that have a wider search."""
    few = {name for name in rules.cost_order() if CARDS[name].n_labels <= rules.MANY_LABELS}
    return [cell for cell in cells() if cell[0] in few and cell[1] == 0 and BY_NAME[cell[2]].wide]


def run(chosen: Iterable[Cell], jobs: int = 1, folder: Path = rows.FOLDER) -> None:
    """Run the cells that have no rows yet."""
    known, active, began = rows.done(folder), list[Child](), time.perf_counter()
    waiting = iter([cell for cell in chosen if cell not in known])
    folder.mkdir(parents=True, exist_ok=True)
    try:
        while True:
            while len(active) < jobs and (cell := next(waiting, None)):
                active.append(Child(cell, _task(*cell[:2])))
            if not active:
                return
            for child in list(active):
                if (found := child.poll()) is not None:
                    active.remove(child)
                    rows.append(found, folder)
                    _tell(found[-1], time.perf_counter() - began)
    finally:
        for child in active:
            child.end()


def _tell(row: dict[str, Any], seconds: float) -> None:
    text = row["reason"] if row["status"] != "ok" else (
        f"{row['n_points']} points, {row['search_seconds'] + row['fit_seconds']:.1f} s, "
        f"average precision {row['average_precision']:.3f}"
    )  # fmt: skip
    print(f"{seconds:7.0f} s  {row['dataset']} · split {row['split']} · {row['method']}: {text}", flush=True)
