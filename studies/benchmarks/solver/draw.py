"""Draw the list of problems in ``problems.csv``, the same each time: ``python -m studies.benchmarks.solver.draw``.

Twenty configurations, with four settings of (ridge, ranking, nuclear) each: the paper's and three of a grid.
A third of the problems is held out: whoever tunes the solver looks at the others alone.
"""

import csv
from itertools import product
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("problems.csv")
SEED = 0
# Designs: "linear", features as `studies.benchmarks.problems.part` has them; "unit", each row divided by its norm;
# "kernel", RBF.
CONFIGURATIONS = [
    *product(("emotions", "yeast", "image"), ("kernel", "linear")),
    *product(("arts", "enron", "science", "slashdot", "langlog", "human3106", "cal500", "stackex_chess"), ("linear",)),
    *product(("20ng", "yahoo_arts_full"), ("linear",)),
    ("yahoo_arts_full", "unit"),
    *product(("corel5k", "bibtex", "delicious"), ("linear",)),
]
# Sets of 200 labels and more, which are solved less finely.
MANY_LABELS = ("stackex_chess", "corel5k", "delicious")
DEFAULTS = (1.0, 0.1, 0.1)
GRID = list(product((0.01, 1.0, 100.0), repeat=3))
# The hardest corners, which occur more often than others.
HARD = [(0.01, 100.0, 0.01), (0.01, 0.01, 0.01)]
HARD_COUNT, OTHER_COUNT, PER_CONFIGURATION = 5, 2, 3
N_HELD = 27


def draw(seed=SEED):
    """Rows of the list, as dicts."""
    rng = np.random.default_rng(seed)
    settings = [[DEFAULTS, *drawn] for drawn in drawn_settings(rng)]
    held = held_places(rng, settings)
    return [
        one_problem(data, design, setting, "held" if (i, j) in held else "tuning")
        for i, (data, design) in enumerate(CONFIGURATIONS)
        for j, setting in enumerate(settings[i])
    ]


def drawn_settings(rng):
    """Three different settings for each configuration, all of the grid used as often as the others."""
    pool = [setting for setting in GRID for _ in range(HARD_COUNT if setting in HARD else OTHER_COUNT)]
    while True:
        groups = rng.permutation(len(pool)).reshape(len(CONFIGURATIONS), PER_CONFIGURATION)
        drawn = [sorted(pool[place] for place in group) for group in groups]
        if all(len(set(group)) == PER_CONFIGURATION for group in drawn):
            return drawn


def held_places(rng, settings):
    """(configuration, setting) of what is held out: one or two of each configuration, a third of each kind of setting."""
    n = len(settings)
    while True:
        counts = np.ones(n, dtype=int)
        counts[rng.choice(n, N_HELD - n, replace=False)] += 1
        places = {(i, int(j)) for i in range(n) for j in rng.choice(len(settings[i]), counts[i], replace=False)}
        of_kind = [sum(settings[i][j] == kind for i, j in places) for kind in (DEFAULTS, *HARD)]
        if of_kind[0] in (6, 7) and all(count in (1, 2) for count in of_kind[1:]):
            return places


def one_problem(data, design, setting, part):
    numbers = [f"{value:g}" for value in setting]
    row = {"problem": " ".join((data, design, *numbers)), "data": data, "design": design}
    row |= dict(zip(("ridge", "ranking", "nuclear"), numbers, strict=True))
    return row | {"tol": "0.001" if data in MANY_LABELS else "0.0001", "part": part}


def read():
    """The list as it was drawn, numbers as numbers."""
    with FILE.open(encoding="utf-8", newline="") as file:
        numbers = ("ridge", "ranking", "nuclear", "tol")
        return [row | {name: float(row[name]) for name in numbers} for row in csv.DictReader(file)]


def main():
    rows = draw()
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
