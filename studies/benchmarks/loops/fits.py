"""Time whole fits with other loops: ``python -m studies.benchmarks.loops.fits SOURCE [PART ...]``

SOURCE is the folder `src` of another version of rbrl. Everything but the loops is ours: fits of
`studies.benchmarks.evaluations`, searches of `studies.benchmarks.search_time` and fits of `studies.benchmarks.many_labels`,
with our loops and with those, in turns; a PART is the name of one of the three. It needs RBRL_DATA and RBRL_GOLDEN;
all parts together rewrite ``fits.md``.
"""

import sys
import time
import warnings
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import rbrl.solvers  # all that calls a loop is imported, before it is given others
from rbrl import RBRLClassifier, __version__, datasets
from rbrl._loops import rows
from studies.benchmarks.evaluations.__main__ import CASES
from studies.benchmarks.loops.__main__ import other_loops
from studies.benchmarks.many_labels.__main__ import METHODS
from studies.benchmarks.problems import (
    folder,
    golden_emotions,
    kernel_design,
    linear_design,
    markdown,
    rbrl_objective,
    yeast,
)
from studies.benchmarks.search_time.__main__ import search

TEXT = """Processor seconds with our loops and with those of `{}`, everything else ours, in one process in which the two
take turns after a fit with the latter that is not counted: medians of as many rounds as the last column says, and the median
of the ratios, ours to theirs, of the two runs of a round. Evaluations, ours and theirs: the same where sums that are rounded
otherwise do not lead the solver another way."""
SECONDS, ROUNDS = 4.0, (2, 41)


@contextmanager
def loops_are(loops):
    """Replace the loops everywhere in the package."""
    modules = [module for name, module in sys.modules.items() if name.startswith("rbrl.") and name != "rbrl._loops"]
    users = [(module, name) for module in modules for name, value in vars(module).items() if value is rows]
    for module, name in users:
        setattr(module, name, loops)
    yield
    for module, name in users:
        setattr(module, name, rows)


def evaluations():
    X, Y = golden_emotions()
    X_yeast, Y_yeast = yeast()
    problems = {
        "emotions kernel": (kernel_design(X), Y),
        "emotions linear": (linear_design(X), Y),
        "yeast kernel": (kernel_design(X_yeast), Y_yeast),
    }
    for name, weights, _ in CASES:
        objective = rbrl_objective(*problems[name], *weights)
        text = f"{name}, {', '.join(f'{w:g}' for w in weights)}"
        yield text, lambda problem=objective: rbrl.solvers.QuasiNewton().solve(problem).evaluations


def search_time():
    for data in ("emotions", "yeast"):
        yield data, lambda name=data: search(name)[0].cv_results_["mean_evaluations"].mean()


def many_labels():
    train, _ = datasets.load("delicious", data_home=folder("RBRL_DATA")).split(0)
    for name, _, parameters in (method for method in METHODS if method[1] == "rbrl"):
        model = RBRLClassifier(intercept_ridge=None, **parameters)
        yield name, lambda model=model: model.fit(*train).n_evaluations_


PARTS = {part.__name__: part for part in (evaluations, search_time, many_labels)}


def run(fit, loops):
    """Processor seconds, and evaluations."""
    with loops_are(loops):
        started = time.process_time()
        counted = fit()
        return time.process_time() - started, counted


def row(name, fit, other):
    first, _ = run(fit, other)
    rounds = int(np.clip(SECONDS / first, *ROUNDS))
    runs = np.array([[run(fit, rows), run(fit, other)] for _ in range(rounds)])
    ours, theirs = runs[:, :, 0].T
    found = {"ours": np.median(ours), "others": np.median(theirs), "ratio": np.median(ours / theirs)}
    found = {"fit": name} | {key: f"{value:.3g}" for key, value in found.items()}
    found |= {"evaluations": "{:.4g}, {:.4g}".format(*runs[0, :, 1]), "rounds": rounds}
    print(*found.values(), sep=" | ", flush=True)
    return found


def main(source, *parts):
    warnings.simplefilter("ignore")
    other = other_loops(Path(source).resolve())
    found = [row(f"{part}: {name}", fit, other) for part in parts or PARTS for name, fit in PARTS[part]()]
    command = f"Command: `python -m studies.benchmarks.loops.fits {source}`"
    stamp = f"{command}, rbrl {__version__}, {datetime.now(UTC):%Y-%m-%d}, one thread."
    page = f"# Whole fits with other loops\n\n{stamp}\n\n{TEXT.format(source)}\n\n{markdown(found)}\n"
    if not parts:
        Path(__file__).with_suffix(".md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    with threadpool_limits(1):
        main(*sys.argv[1:])
