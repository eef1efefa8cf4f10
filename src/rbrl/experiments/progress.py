"""What `execute` tells while it runs, and a listener that writes plain lines."""

import sys
import time


class Progress:
    """A listener; each method is called when its event happens, always from the thread that called `execute`.

    Write a subclass with the methods that you need; the others do nothing.
    """

    def planned(self, plan, n_runs, n_reused):
        """Before the first run: how many runs the plan has, and how many are done already."""

    def noted(self, text):
        """Something worth knowing, for people."""

    def started(self, run):
        """A run was given to a worker."""

    def finished(self, run, outcome):
        """A run is in the store."""

    def failed(self, run, outcome):
        """A run failed; its error is in the store."""

    def closed(self):
        """Nothing more will come, whether all was done or not."""


class PlainProgress(Progress):
    """A line for each run, for logs and pipes.

    Parameters
    ----------
    stream : text stream, default=sys.stderr
    """

    def __init__(self, stream=None):
        self.stream = stream or sys.stderr
        self._n_runs = self._n_done = self._n_new = 0
        self._began = time.monotonic()

    def planned(self, plan, n_runs, n_reused):
        """Write how much there is to do."""
        self._n_runs, self._n_done, self._began = n_runs, n_reused, time.monotonic()
        self._line(f"{n_runs} runs, {n_reused} of them done already")

    def noted(self, text):
        """Write the note."""
        self._line(text)

    def finished(self, run, outcome):
        """Write what was done and how long the rest may take."""
        seconds = outcome.tune_seconds + outcome.train_seconds + outcome.test_seconds
        self._count(f"{run.title}: {seconds:.1f} s")

    def failed(self, run, outcome):
        """Write the error."""
        self._count(f"{run.title}: FAILED: {one_line(outcome.error)}")

    def _count(self, text):
        self._n_done += 1
        self._n_new += 1
        left = time_left(self._began, self._n_new, self._n_runs - self._n_done)
        self._line(f"[{self._n_done}/{self._n_runs}{left and f', {left} left'}] {text}")

    def _line(self, text):
        self.stream.write(f"{text}\n")
        self.stream.flush()


def one_line(text):
    """Text without line breaks, such as errors have them."""
    return " ".join(text.split())


def time_left(began, n_new, n_left):
    """About how long the rest takes at the pace so far, as text; empty if nothing is left or known."""
    if n_new == 0 or n_left <= 0:
        return ""
    seconds = round((time.monotonic() - began) / n_new * n_left)
    if seconds < 60:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
