"""Where runs are done: in this process, in processes beside it, or on a Dask cluster. All have one interface."""

import os
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait

from rbrl._common.checks import check_one_of, check_whole
from rbrl.experiments.worker import work, work_apart

BACKENDS = ("serial", "processes", "dask")


class Serial:
    """Runs one after the other, in this process."""

    n_workers = 1

    def submit(self, task, X, Y, *what):
        """Do the run, and return a future that has its outcome; the arguments are those of `work`."""
        future: Future = Future()
        future.set_result(work(task, X, Y, *what))
        return future

    def first_done(self, futures):
        """Wait for one of the futures; return those that are done."""
        return wait(futures, return_when=FIRST_COMPLETED).done

    def died(self, error):
        """Whether the error says that a worker was lost, not that a run failed."""
        return isinstance(error, BrokenExecutor | CancelledError)

    def close(self, kill=False):
        """Let the workers go; with `kill`, at once."""


class Processes(Serial):
    """Worker processes on this machine (joblib's loky); they are replaced when one of them dies."""

    def __init__(self, n_workers):
        self.n_workers = n_workers

    def submit(self, task, X, Y, *what):
        """Send the run to a worker."""
        return self._executor().submit(work_apart, task, X, Y, *what)

    def close(self, kill=False):
        """Stop the workers."""
        self._executor().shutdown(wait=True, kill_workers=kill)

    def _executor(self):
        from joblib.externals.loky import get_reusable_executor

        return get_reusable_executor(max_workers=self.n_workers)


class Dask(Serial):
    """Workers of a Dask cluster; a data set is sent to them once.

    Parameters
    ----------
    scheduler : str, Client, cluster or None
        Address of the scheduler, or an object of `distributed`. None: the client in use, or else a new local cluster.
    n_workers : int
        Runs in flight; 1 means as many as the cluster has threads.
    """

    def __init__(self, scheduler, n_workers):
        self._client, self._ours = _client(scheduler)
        self.n_workers = n_workers if n_workers > 1 else max(1, sum(self._client.nthreads().values()))
        self._sent: dict[int, tuple] = {}

    def submit(self, task, X, Y, *what):
        """Send the run to the cluster."""
        if id(X) not in self._sent:
            # The data itself is kept beside its copies: its id may otherwise be given to other data.
            self._sent = {id(X): (X, self._client.scatter([X, Y], hash=False))}
        return self._client.submit(work_apart, task, *self._sent[id(X)][1], *what, pure=False)

    def first_done(self, futures):
        """Wait for one of the futures; return those that are done."""
        from distributed import wait as wait_for

        with self._client.as_current():
            return wait_for(list(futures), return_when="FIRST_COMPLETED").done

    def died(self, error):
        """Whether the error says that a worker was lost."""
        return type(error).__name__ in ("KilledWorker", "CancelledError", "FutureCancelledError", "CommClosedError")

    def close(self, kill=False):
        """Forget the data; close the client if it was made here."""
        self._sent = {}
        if self._ours:
            self._client.close()


def make_backend(backend, jobs, scheduler):
    """Return the backend that `execute` was asked for.

    Parameters
    ----------
    backend : {"serial", "processes", "dask"} or None
        None: "dask" if there is a scheduler, "serial" for one job, "processes" for more.
    jobs : int
        Runs at a time; -1 means one per core.
    scheduler
        As for `Dask`.
    """
    jobs = (os.cpu_count() or 1) if jobs == -1 else check_whole("jobs", jobs, 1)
    if backend is None:
        backend = "dask" if scheduler is not None else "processes" if jobs > 1 else "serial"
    check_one_of("backend", backend, BACKENDS)
    if backend == "dask":
        return Dask(scheduler, jobs)
    return Processes(jobs) if backend == "processes" else Serial()


def _client(scheduler):
    """Return (client, whether it was made here)."""
    try:
        from distributed import Client, default_client
    except ImportError as error:
        raise ImportError(f"backend='dask' needs Dask ({error}): pip install 'rbrl[dask]'.") from error
    if isinstance(scheduler, Client):
        return scheduler, False
    if scheduler is None:
        try:
            return default_client(), False
        except ValueError:
            pass
    return Client(scheduler, set_as_default=False), True
