"""Random problems of every kind and any scale, each repeatable from its seed."""

from dataclasses import dataclass, field
from unittest.mock import patch

import numpy as np
from scipy import sparse
from sklearn.base import clone

from rbrl import BRLClassifier, RBRLClassifier, compress
from rbrl.estimators import CPNL, convex_problem, forms
from rbrl.problem import objective
from rbrl.solvers import certificate

from .posed import pose, stored_weights

KINDS = ("dense", "wide", "sparse", "float32", "blocks", "rbf", "poly", "precomputed")
LARGEST = 1e12
KERNELS = ("rbf", "poly", "precomputed")
INTERCEPT_RIDGES = (None, 1.0, 1e-3, 100.0)


@dataclass
class Problem:
    """A model to fit to X and 0/1 labels Y, of which some may be missing, perhaps with weights of rows or entries, in
    parts, or after another fit."""

    seed: int
    kind: str
    model: object
    X: object
    Y: np.ndarray
    weights: np.ndarray | None = None
    n_parts: int = 0
    earlier_ridge: float | None = None
    story: list = field(default_factory=list)

    # Whether an objective may be off by the rounding of kernel values as long as the gap covers it.
    gap_covers_kernel_rounding = False
    # Whether a fit may end above its tolerance without a warning, at a local optimum of a given rank.
    may_end_above_tol = False

    def fit(self):
        """A fitted copy of the model; the caller sees all warnings."""
        model = clone(self.model)
        if self.earlier_ridge is not None:
            self._fit(model.set_params(ridge=self.earlier_ridge, warm_start=True))
            model.set_params(ridge=self.model.ridge)
        return self._fit(model)

    def pose(self):
        """What the fit is to minimise."""
        return pose(self.model, self.X, self.Y, self.weights)

    def stored_weights(self, model, posed):
        """The coefficients of a fitted model in the form of the posed problem."""
        return stored_weights(model, posed)

    def _fit(self, model):
        if not self.n_parts:
            return model.fit(self.X, self.Y, sample_weight=self.weights)
        cuts = np.array_split(np.arange(len(self.Y)), self.n_parts)
        return model.fit([(self.X[rows], self.Y[rows]) for rows in cuts])

    def has_entries(self):
        """Whether labels are missing, or entries have weights of their own."""
        of_entries = np.ndim(self.weights) == 2 or getattr(self.model, "class_weight", None) is not None
        return of_entries or bool(np.isnan(self.Y).any())

    def has_unseen_label(self):
        """Whether nobody looked at some label, or gave it a weight, in any row."""
        weights = np.ones(len(self.Y)) if self.weights is None else self.weights
        weights = weights[:, None] if weights.ndim == 1 else weights
        return not (~np.isnan(self.Y) & (weights > 0)).any(axis=0).all()

    def __str__(self):
        model = self.model
        names = [name for name in PENALTIES if hasattr(model, name)]
        words = [f"{name}={getattr(model, name):.3g}" for name in names]
        words += [f"{name}={getattr(model, name)}" for name in ("solver", "tol", "fit_intercept", "intercept_ridge")]
        if self.kind in KERNELS:
            words += [f"gamma={model.gamma}", f"degree={model.degree}", f"low_rank={model.low_rank}"]
        words += (
            [f"weights {self.weights.shape} ({np.count_nonzero(self.weights == 0)} zeros)"]
            if self.weights is not None
            else []
        )
        words += [f"{np.isnan(self.Y).mean():.0%} missing"] if np.isnan(self.Y).any() else []
        words += [f"class_weight={model.class_weight}"] if getattr(model, "class_weight", None) is not None else []
        words += [f"{self.n_parts} parts"] if self.n_parts else []
        words += ["warm"] if self.earlier_ridge is not None else []
        words.append(f"{type(self.X).__name__} of {self.X.dtype}")
        shape = f"{self.X.shape[0]}x{self.X.shape[1]}, {self.Y.shape[1]} labels"
        return f"{type(model).__name__} {self.kind} {shape}: {', '.join(words + self.story)}"


class FactorsProblem(Problem):
    """A linear model that stays in factors, and whose scores are computed in blocks of rows."""

    @property
    def may_end_above_tol(self):
        return self.model.max_rank is not None

    def fit(self):
        l = self.Y.shape[1]
        block = int(np.random.default_rng([self.seed, 2]).integers(1, 1 + self.Y.size))
        with (
            patch.object(forms, "LARGEST_DENSE", 0),
            patch.object(objective, "PRODUCT_BLOCK", block),
            patch.object(certificate, "LARGEST_PULL", max(block // l, 1)),
            patch.object(certificate, "FEWEST_LABELS", 1 + block % l),
        ):
            return super().fit()


def random_factors_problem(seed):
    """The linear problem of that number, for the solver in factors; half of them have a largest rank."""
    linear = [kind for kind in KINDS if kind not in (*KERNELS, "blocks")]
    for number in range(seed * 100, (seed + 1) * 100):
        problem = random_problem(number)
        if problem.kind == linear[seed % len(linear)] and not isinstance(problem.model, CPNL):
            break
    rng = np.random.default_rng([seed, 3])
    problem.model.set_params(solver="low-rank", max_rank=int(rng.integers(1, 7)) if rng.random() < 0.5 else None)
    problem.model.set_params(max_iter=300)
    return FactorsProblem(**vars(problem) | {"seed": seed})


class CompressedProblem(Problem):
    """A linear model of independent labels in groups, or a model that is compressed during or after its fit."""

    # An objective rises by at most this share. The gap is then above the tolerance, without a warning.
    rise: float = 0.0
    may_end_above_tol = True

    def fit(self):
        mode = self.seed % 4
        self.rise = float(10.0 ** np.random.default_rng([self.seed, 4]).uniform(-4, 0))
        n_bytes = 8 * (len(self.Y) + self.X.shape[1] + 1)
        with patch.object(convex_problem, "LARGEST_GROUP", 2 * n_bytes):
            if mode < 2:
                self.model.set_params(compress=self.rise if mode else None)
                return super().fit()
            model = super().fit()
        form = "sparse" if mode == 2 else "factors"
        try:
            return compress(model, self.X, self.Y, self.weights, tol=self.rise, form=form)
        except ValueError as error:
            if "no factors that are smaller" in str(error):
                return model
            raise


def random_compressed_problem(seed):
    """The linear problem of that number; every second one has independent labels, which are solved in groups."""
    linear = [kind for kind in KINDS if kind not in (*KERNELS, "blocks")]
    for number in range(seed * 100, (seed + 1) * 100):
        problem = random_problem(number)
        if problem.kind == linear[seed // 4 % len(linear)] and not isinstance(problem.model, CPNL):
            break
    problem.earlier_ridge = None
    if seed % 4 == 0 or seed % 8 > 4:
        problem.model.set_params(nuclear=0, solver="auto")
        if isinstance(problem.model, RBRLClassifier):
            problem.model.set_params(ranking=0)
    return CompressedProblem(**vars(problem) | {"seed": seed})


PENALTIES = ("ridge", "ranking", "nuclear", "positive", "negative")


def random_problem(seed):
    """The problem of that number; kinds take turns."""
    rng, kind = np.random.default_rng(seed), KINDS[seed % len(KINDS)]
    n, m, l = random_sizes(rng, kind)
    base = rng.standard_normal((n, m))
    Y = random_labels(rng, base, l)
    X, story = awkward_columns(rng, base)
    X = as_kind(rng, kind, X)
    problem = Problem(seed, kind, random_model(rng, kind, X), X, Y, story=story)
    problem.model.set_params(intercept_ridge=INTERCEPT_RIDGES[seed // len(KINDS) % len(INTERCEPT_RIDGES)])
    if kind == "blocks":
        problem.n_parts = int(rng.integers(1, min(n, 5)))
    elif rng.random() < 0.35:
        problem.weights = random_weights(rng, n)
    if rng.random() < 0.15:
        problem.earlier_ridge = float(10.0 ** rng.uniform(-2, 2))
    random_entries(np.random.default_rng([seed, 1]), problem)
    return problem


def random_entries(rng, problem):
    """Take labels away, or weigh entries, in every second problem."""
    if rng.random() < 0.5:
        return
    n, l = problem.Y.shape
    if rng.random() < 0.7:
        Y = problem.Y.astype(float)
        Y[rng.random((n, l)) < rng.choice([0.05, 0.3, 0.6, 0.9])] = np.nan
        if rng.random() < 0.3:
            Y[rng.integers(n)] = np.nan
        if rng.random() < 0.2:
            Y[:, rng.integers(l)] = np.nan
        # What tells the coding stays.
        Y[0, 0], Y[1, 0] = 0, 1
        problem.Y = Y
    if problem.kind != "blocks" and rng.random() < 0.6:
        problem.weights = random_weights(rng, n * l).reshape(n, l)
        problem.weights[:2, 0] = np.maximum(problem.weights[:2, 0], 1e-3)
    if not isinstance(problem.model, CPNL) and rng.random() < 0.4:
        choices = {0: 3.0}, {0: (0.5, 2.0), l - 1: 0.1}, "balanced"
        problem.model.set_params(class_weight=choices[rng.integers(3)])


def random_sizes(rng, kind):
    """Rows, features, labels: few are common; kernel models, whose judgement takes longer, have few rows."""
    if kind in KERNELS:
        n = int(rng.integers(5, 41))
        return n, int(rng.integers(1, 13)), int(rng.integers(1, min(6, 160 // n) + 1))
    if kind == "wide":
        n = int(rng.integers(5, 16))
        return n, n + int(rng.integers(1, 10)), int(rng.integers(1, 7))
    return int(np.exp(rng.uniform(np.log(5), np.log(201)))), int(rng.integers(1, 13)), int(rng.integers(1, 7))


def random_labels(rng, base, l):
    """0/1 labels that follow the features more or less, rare and common ones, often with full and empty rows."""
    n = len(base)
    scores = base @ rng.standard_normal((base.shape[1], l)) + rng.choice([0.0, 0.3, 3.0]) * rng.standard_normal((n, l))
    Y = (scores > np.quantile(scores, rng.uniform(0.1, 0.95, l), axis=0)[np.arange(l), np.arange(l)]).astype(int)
    if rng.random() < 0.5:
        Y[rng.integers(n)], Y[rng.integers(n)] = 1, 0
    if rng.random() < 0.1:
        Y[:, rng.integers(l)] = rng.integers(2)
    # A label matrix of zeros or ones alone could be either coding.
    Y[0, 0], Y[1, 0] = 0, 1
    return Y


def awkward_columns(rng, base):
    """Columns of every scale, with what was done to them."""
    X, story = base.copy(), []
    m = X.shape[1]
    if rng.random() < 0.15:
        return X, story
    if rng.random() < 0.2:
        X *= 10.0 ** rng.uniform(-8, 12, m) / np.abs(X).max()
        story.append("all columns scaled")
    for column in rng.permutation(m)[: rng.integers(0, min(m, 4) + 1)]:
        change = CHANGES[rng.integers(len(CHANGES))]
        X[:, column] = change(rng, X, column)
        X[:, column] /= max(np.abs(X[:, column]).max() / LARGEST, 1.0)
        story.append(f"{change.__name__.strip('_')} {np.abs(X[:, column]).max():.1e}")
    return X, story


def _scaled(rng, X, column):
    return X[:, column] * 10.0 ** rng.uniform(-8, 12)


def _near_constant(rng, X, column):
    """As a time stamp: large, and varying little."""
    return 10.0 ** rng.uniform(2, 12) + 10.0 ** rng.uniform(-3, 3) * X[:, column]


def _constant(rng, X, column):
    return np.full(len(X), 10.0 ** rng.uniform(-8, 12))


def _zero(rng, X, column):
    return np.zeros(len(X))


def _duplicate(rng, X, column):
    return X[:, rng.integers(X.shape[1])]


def _near_duplicate(rng, X, column):
    return X[:, rng.integers(X.shape[1])] * (1 + 10.0 ** rng.uniform(-14, -2) * rng.standard_normal(len(X)))


def _multiple(rng, X, column):
    return X[:, rng.integers(X.shape[1])] * 10.0 ** rng.uniform(-8, 8)


def _heavy_tailed(rng, X, column):
    return np.exp(5 * rng.standard_normal(len(X)))


CHANGES = (
    _scaled,
    _scaled,
    _near_constant,
    _near_constant,
    _constant,
    _zero,
    _duplicate,
    _near_duplicate,
    _multiple,
    _heavy_tailed,
)


def as_kind(rng, kind, X):
    if kind == "sparse" or (kind in ("blocks", "rbf", "poly") and rng.random() < 0.2):
        return sparse.csr_array(np.where(rng.random(X.shape) < 0.4, X, 0.0))
    if kind == "float32" or (kind in ("rbf", "poly") and rng.random() < 0.15):
        return X.astype(np.float32)
    return kernel_matrix(rng, X) if kind == "precomputed" else X


def kernel_matrix(rng, X):
    """Positive semidefinite in spite of rounding: of whole numbers, or with a diagonal that makes up for it."""
    n = len(X)
    if rng.random() < 0.5:
        whole = np.rint(10.0 ** rng.uniform(0, 5) * rng.standard_normal((n, X.shape[1])))
        return whole @ whole.T * 2.0 ** rng.integers(-30, 30)
    X = X / np.maximum(np.abs(X).max(axis=0), 1e-300)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    return 10.0 ** rng.uniform(-6, 6) * (K + 10.0 ** rng.uniform(-12, -1) * np.eye(n))


def random_model(rng, kind, X):
    choices = {"ridge": _penalty(rng, 0.2), "tol": float(rng.choice([1e-4] * 6 + [1e-2, 1e-6, 1e-8]))}
    choices["solver"] = "auto" if kind == "blocks" else str(rng.choice(["auto"] * 6 + ["apg", "low-rank"]))
    choices["fit_intercept"] = bool(rng.random() < 0.8) and kind != "precomputed"
    # Random labels often leave most predictions empty: "auto" would warn of them, and predictions are not judged here.
    choices["non_empty"] = False
    estimator = (RBRLClassifier, BRLClassifier, CPNL)[rng.choice(3, p=[0.5, 0.25, 0.25])]
    if kind in KERNELS:
        choices |= {"kernel": kind, "gamma": _gamma(rng, X), "degree": int(rng.integers(1, 4))}
    if estimator is CPNL:
        choices |= {
            "positive": _penalty(rng, 0.2),
            "negative": _penalty(rng, 0.2),
            "beta": float(rng.choice([0, 0.5, 1])),
        }
        choices["solver"] = "auto" if choices["solver"] == "low-rank" else choices["solver"]
        return estimator(**choices)
    choices["nuclear"] = _penalty(rng, 0.35)
    choices["low_rank"] = str(rng.choice(["coefficients", "function"]))
    if estimator is RBRLClassifier:
        choices["ranking"] = _penalty(rng, 0.2)
    return estimator(**choices)


def _penalty(rng, zero):
    return 0.0 if rng.random() < zero else float(10.0 ** rng.uniform(-4, 3))


def _gamma(rng, X):
    """The default, or one that fits the distances that there are."""
    if rng.random() < 0.5:
        return None
    X = X.toarray() if sparse.issparse(X) else X
    spread = float(np.var(X.astype(np.float64), axis=0).sum())
    return float(10.0 ** rng.uniform(-2, 1) / spread) if spread > 0 else 1.0


def random_weights(rng, n):
    """Whole numbers, or shares of any size; often zeros among them; never only zeros."""
    weights = rng.integers(1, 4, n).astype(float) if rng.random() < 0.3 else rng.random(n) * 10.0 ** rng.uniform(-3, 3)
    if rng.random() < 0.5:
        weights[rng.random(n) < 0.3] = 0.0
    weights[:2] = np.maximum(weights[:2], weights.max(initial=1e-3))
    return weights
