"""Compare approximated and exact kernels: ``python -m studies.benchmarks.kernel_approximation``, with RBRL_DATA."""

import json
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl

from studies.benchmarks.problems import markdown, write_results

mpl.use("Agg")

MODEL = {"gamma": 0.02, "ridge": 1.0, "ranking": 0.1, "nuclear": 1.0, "low_rank": "function", "tol": 1e-3}
SMALL, LARGE = 4000, 20000
SIZES = (50, 100, 200, 400, 800)
KINDS = {
    "Nyström, centres": {"approximation": "nystroem"},
    "Nyström, rows": {"approximation": "nystroem", "landmarks": "uniform"},
    "Fourier": {"approximation": "fourier"},
}
TEXT = f"""RBRL with an RBF kernel on rows of tmc2007_500 (500 features, 22 labels), tested on 4,000 others; gamma = 0.02,
ridge = 1, ranking = 0.1, nuclear = 1 of the function, tol = 1e-3, one seed. Every model in a process of its own, one
thread; seconds are processor time, "GB" is the peak of the process, Python, libraries and data included. "centres" are those
of clusters of the rows, "rows" a uniform sample of them. First {SMALL:,} training rows:"""
AFTER = f"""Then {LARGE:,} training rows. The kernel matrix of the exact model is in single precision. The gap of an
approximation is that of the approximated problem."""


def run(n_train, parameters):
    command = [
        sys.executable,
        "-m",
        "studies.benchmarks.kernel_approximation.worker",
        str(n_train),
        json.dumps(MODEL | parameters),
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def row(n_train, kind, size, parameters):
    facts = run(n_train, parameters)
    line = {
        "kernel": kind,
        "components": size,
        "ranking loss": f"{facts['ranking loss']:.4f}",
        "gap": f"{facts['gap']:.0e}",
    }
    line |= {"evaluations": f"{facts['evaluations']:.1f}", "fit": f"{facts['fit']:.1f}"}
    line |= {"predict": f"{facts['predict']:.2f}", "GB": f"{facts['peak']:.2f}"}
    print(line, flush=True)
    return line


def approximated(n_train, sizes, kinds):
    return [row(n_train, kind, k, KINDS[kind] | {"n_components": k}) for kind in kinds for k in sizes]


def draw(rows):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for kind in KINDS:
        mine = [row for row in rows if row["kernel"] == kind]
        axes.plot([row["components"] for row in mine], [float(row["ranking loss"]) for row in mine], "o-", label=kind)
    exact = float(next(row for row in rows if row["kernel"] == "exact")["ranking loss"])
    axes.axhline(exact, color="black", linestyle="--", label="exact kernel")
    axes.set(xscale="log", xlabel="components", ylabel="ranking loss", title=f"tmc2007_500, {SMALL:,} rows")
    axes.set_xticks(SIZES, [str(size) for size in SIZES])
    axes.minorticks_off()
    axes.legend(frameon=False)
    figure.savefig(Path(__file__).with_name("kernel_approximation.svg"), metadata={"Date": None})


def main():
    small = [row(SMALL, "exact", SMALL, {}), *approximated(SMALL, SIZES, KINDS)]
    draw(small)
    large = [row(LARGE, "exact", LARGE, {}), *approximated(LARGE, (400, 800), ("Nyström, centres",))]
    write_results(__file__, "Approximated kernels", TEXT, small, after=f"{AFTER}\n\n{markdown(large)}")


if __name__ == "__main__":
    main()
