"""Measure the memory of a fit of sparse text: ``python -m studies.benchmarks.memory``, with RBRL_DATA."""

import resource
import time

from threadpoolctl import threadpool_limits

from rbrl import datasets
from studies.benchmarks.problems import first_model, folder, write_results

TEXT = """All 6,000 rows of rcv1subset1, 47,236 sparse features, 101 labels; the paper's parameters. Peak memory of
the process, Python, libraries and data included."""


def main():
    data = datasets.load("rcv1subset1", data_home=folder("RBRL_DATA"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    started = time.perf_counter()
    model = first_model().fit(data.X, data.Y)
    row = {"data": data.name, "seconds": f"{time.perf_counter() - started:.0f}", "certified gap": f"{model.gap_:.0e}"}
    row |= {"evaluations": f"{model.n_evaluations_:.0f}", "GB before": f"{before:.2f}"}
    row["GB peak"] = f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f}"
    write_results(__file__, "Memory", TEXT, [row])


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
