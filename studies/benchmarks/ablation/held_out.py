"""The held-out list: problems that only the quasi-Newton solver serves, never used to choose its settings.

The weights are drawn from a grid with a fixed seed. No problem of ``studies/benchmarks/solver/problems.csv`` is among them.
The list of another seed served to choose which features were removed, and the values of the settings that remain.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy import sparse
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import StandardScaler

from rbrl import CPNL, RBRLClassifier
from rbrl.losses import PairwiseSquaredHinge, SquaredHinge, WeightedSum
from rbrl.out_of_core import BlockDesign, LocalBlocks
from rbrl.out_of_core.objective import BlockObjective
from rbrl.problem import FeatureMapDesign
from studies.benchmarks.problems import dataset, kernel_design, rbrl_objective, signed

HELD_OUT_SEED = 2027
SEED_OF_CHOICES = 2026
# Stronger ridges leave nothing to tell apart: most of these problems are solved by the first point.
GRID = tuple(product((0.01, 1.0), (0.01, 1.0, 100.0), (0.01, 1.0, 100.0)))
N_COMPONENTS = 200
N_BLOCKS = 3
# Kind of problem, data set, and the largest number of its rows.
CONFIGURATIONS = (
    *product(
        ("kernel",), ("flags", "scene", "business", "education", "recreation", "cal500", "scene", "health"), (600,)
    ),
    *product(("features",), ("human3106", "tmc2007_500", "scene"), (1000,)),
    *product(("blocks",), ("scene", "business", "health", "langlog", "science", "recreation"), (400,)),
    *product(("graph",), ("flags", "education", "recreation", "enron", "scene"), (500,)),
    *product(("no ridge",), ("flags", "scene", "tmc2007_500"), (600,)),
    *product(("linear",), ("business", "cal500", "stackex_chess", "education", "human3106"), (500,)),
)


@dataclass(frozen=True)
class HeldOutProblem:
    """One problem of the list.

    Attributes
    ----------
    kind : str
        "kernel" and "features" have a nuclear norm on the coefficients of a kernel and of a Nyström map; the rows of
        "blocks" are summed block by block; "graph" is CPNL; "no ridge" is linear with ridge=0; "linear" is what a user
        gets who names the solver.
    data : str
        Name of the data set.
    n_rows : int
        Largest number of rows.
    ridge, ranking, nuclear : float
        Weights of the penalties and of the ranking loss.
    """

    kind: str
    data: str
    n_rows: int
    ridge: float
    ranking: float
    nuclear: float

    @property
    def name(self):
        return f"{self.data} {self.kind} {self.ridge:g} {self.ranking:g} {self.nuclear:g}"

    def rows(self):
        """Return standardised dense features, or sparse ones as they are, and labels in {-1, +1}."""
        (X, Y), _ = dataset(self.data).split(1)
        X = X[: self.n_rows]
        return (X if sparse.issparse(X) else StandardScaler().fit_transform(X)), signed(Y[: self.n_rows])

    def objective_maker(self):
        """Return a function that makes the objective afresh, without the work that all solvers share."""
        X, Y = self.rows()
        weights = self.ridge, self.ranking, self.nuclear
        if self.kind == "blocks":
            cuts = np.array_split(np.arange(len(Y)), N_BLOCKS)
            parts = [(X[rows], Y[rows]) for rows in cuts]
            loss = WeightedSum((1.0, SquaredHinge()), (self.ranking, PairwiseSquaredHinge()))
            return lambda: BlockObjective(BlockDesign(LocalBlocks(parts), True), loss, self.ridge, self.nuclear)
        if self.kind == "kernel":
            design = kernel_design(X)
        elif self.kind == "features":
            mapping = Nystroem(gamma=1.0 / X.shape[1], n_components=N_COMPONENTS, random_state=0)
            design = FeatureMapDesign(mapping.fit_transform(X))
        elif self.kind == "graph":
            model = CPNL(ridge=self.ridge, positive=self.ranking, negative=self.nuclear)
            problem = model.problem(X, Y)
            return problem.objective
        else:
            problem = RBRLClassifier(ridge=self.ridge, ranking=self.ranking, nuclear=self.nuclear).problem(X, Y)
            return problem.objective
        return lambda: rbrl_objective(design, Y, *weights)


def held_out_problems(seed=HELD_OUT_SEED):
    """Return the list of a seed, the same in every call."""
    rng = np.random.default_rng(seed)
    found = []
    for kind, data, n_rows in CONFIGURATIONS:
        ridge, ranking, nuclear = GRID[rng.integers(len(GRID))]
        found.append(HeldOutProblem(kind, data, n_rows, 0.0 if kind == "no ridge" else ridge, ranking, nuclear))
    return found
