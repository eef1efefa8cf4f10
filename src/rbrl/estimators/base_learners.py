"""Base learners of the reductions: two-class learners, label powersets, and chains."""

import warnings
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import log_softmax, softmax
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.multioutput import ClassifierChain
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from rbrl._common.checks import users_level
from rbrl._common.typing import BoolArray, FloatArray, IntArray, Matrix
from rbrl.estimators.named_answers import NOT_FITTED, iterate_parts

# A classifier of scikit-learn, which has no type annotations.
Learner: TypeAlias = Any
# Values of the parameter `random_state` of scikit-learn.
RandomSource: TypeAlias = int | np.random.RandomState | None
# Range of the factor of scores in soft votes: from nearly equal probabilities to hard votes.
SHARPNESS_RANGE = (1e-2, 1e3)
# Number of rows to fit the sharpness to: enough for one number, and cheap compared to the fit of a learner.
ROWS_FOR_SHARPNESS = 1000


@dataclass(frozen=True)
class Inputs:
    """Input of the base learners: rows of features, or of a kernel matrix that all learners share.

    Attributes
    ----------
    matrix : array or sparse matrix (n_samples, n_columns)
        Features, or kernel values with the training rows.
    pairwise : bool
        True for a kernel matrix.
    """

    matrix: Matrix
    pairwise: bool = False

    def take(self, rows: IntArray | None) -> Matrix:
        """Return some of the training rows as a copy, or for None all rows without a copy.

        Of a kernel matrix, the same rows and columns are taken.
        """
        if rows is None:
            return self.matrix
        return self.matrix[np.ix_(rows, rows)] if self.pairwise else self.matrix[rows]


def to_liblinear_rows(X: Matrix) -> Matrix:
    """Return rows in the types of LIBLINEAR, so that the fits need not convert them again.

    Rows that have these types are returned themselves. An index beyond int32 stays as it is.
    """
    X = X.astype(np.float64, copy=False)
    if isinstance(X, np.ndarray) or X.indices.dtype == np.int32 or max(X.nnz, *X.shape) > np.iinfo(np.int32).max:
        return X
    return sparse.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def make_linear_svm(C: float, tol: float | None) -> LinearSVC:
    """Return LIBLINEAR's classifier with the L2-regularised squared hinge.

    It is solved in the primal, which is deterministic and needs no seed. `_minimises_squared_hinge` compares
    parameters with this result: change both together.
    """
    # 1e-4 is the default of scikit-learn.
    return LinearSVC(C=C, tol=1e-4 if tol is None else tol, dual=False)


def make_kernel_svm(C: float, tol: float | None, **kernel: Any) -> SVC:
    """Return LIBSVM's C-SVC, by default for a kernel matrix."""
    # 1e-3 is the default of scikit-learn.
    return SVC(C=C, tol=1e-3 if tol is None else tol, **(kernel or {"kernel": "precomputed"}))


def fit_learner(
    learner: Learner, inputs: Inputs, y: IntArray, weights: FloatArray | None = None, rows: IntArray | None = None
) -> Learner:
    """Fit a learner in place to the classes y of the training rows, and return it.

    `rows` are the indices of the rows to learn from, or None for all. `y` and `weights` (None for
    ones) belong to all training rows, (n_samples,).
    """
    if rows is not None:
        y = y[rows]
        weights = None if weights is None else weights[rows]
    if weights is not None:
        check_accepts_weights(learner)
    if isinstance(learner, LinearSVC):
        _weigh_stopping_rule(learner, y, weights)
    X = inputs.take(rows)
    # The rows were checked once for all learners.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        learner.fit(X, y, **({} if weights is None else {"sample_weight": weights}))
    if _minimises_squared_hinge(learner):
        _reach_tolerance(learner, X, y, weights)
    return learner


def check_accepts_weights(learner: Learner) -> None:
    """Raise ValueError for a base learner that does not accept row weights."""
    if not has_fit_parameter(learner, "sample_weight"):
        raise ValueError(
            f"sample_weight needs a base learner whose fit accepts it. Got {learner!r}, which does not; "
            "leave sample_weight out, or choose another estimator."
        )


def _weigh_stopping_rule(learner: LinearSVC, y: IntArray, weights: FloatArray | None) -> None:
    """Change the tolerance of LIBLINEAR in place, so that a row of weight 2 counts as two rows.

    LIBLINEAR multiplies its tolerance by the share of the rarer class among the rows, and ignores
    the weights of the rows. `y` and `weights` belong to the rows of this fit.
    """
    if weights is None or len(classes := np.unique(y)) != 2:
        return
    code = (y == classes[1]).astype(np.intp)
    counts = np.bincount(code)
    sums = np.bincount(code, weights)
    learner.tol = learner.tol * (sums.min() / sums.sum()) / (counts.min() / counts.sum())


def _minimises_squared_hinge(learner: Learner) -> bool:
    """Return whether a learner minimises `_SquaredHinge`, as those of `make_linear_svm` do.

    The learner need not be fitted.
    """
    if not isinstance(learner, LinearSVC):
        return False
    free = {name: getattr(learner, name) for name in ("C", "tol", "max_iter", "verbose")}
    return learner.get_params() == make_linear_svm(1.0, None).get_params() | free


class _SquaredHinge:
    r"""LIBLINEAR's problem for one class: :math:`\tfrac12 \|v\|^2 + C \sum_i c_i |1 - y_i f_i|_+^2`, f = X w + b.

    The intercept is the last entry of v = (w, b). The Hessian is at least the identity. Therefore the
    distance from v to the solution is at most the norm of the gradient at v.

    y (n_samples,) is in {-1, +1}, and the weights c are None for ones. X and y are not copied.
    """

    def __init__(self, X: Matrix, y: FloatArray, weights: FloatArray | None, C: float) -> None:
        self.X = X
        self.y = y
        self.scale = 2.0 * C * (np.ones(len(y)) if weights is None else weights)

    def gradient(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient at v (n_features + 1,), and the weight of each row in the Hessian at v.

        Both are new arrays.
        """
        slack = np.maximum(1.0 - self.y * (self.X @ v[:-1] + v[-1]), 0.0)
        return v - self._multiply_transpose(self.scale * slack * self.y), self.scale * (slack > 0)

    def minimise(self, v: FloatArray, bound: float, max_steps: int) -> tuple[FloatArray, float]:
        """Apply Newton's method from v; return the last point and the norm of its gradient.

        It stops when the norm is at most `bound`, when no step reduces the norm, or after
        `max_steps`. The given v is not changed.
        """
        g, row_weights = self.gradient(v)
        for _ in range(max_steps):
            if np.linalg.norm(g) <= bound:
                break
            step = self._newton_step(g, row_weights)
            # A step that is still too long after ten halvings is not a direction of descent.
            for share in 0.5 ** np.arange(10):
                g_next, weights_next = self.gradient(v + share * step)
                if np.linalg.norm(g_next) < np.linalg.norm(g):
                    break
            else:
                break
            v = v + share * step
            g = g_next
            row_weights = weights_next
        return v, float(np.linalg.norm(g))

    def _newton_step(self, g: FloatArray, row_weights: FloatArray) -> FloatArray:
        """Solve H d = -g by conjugate gradients; return d (n_features + 1,).

        `row_weights` are the second result of :meth:`gradient`. d is accurate to 1e-6, which costs
        few products, because the rest is corrected by the next step.
        """

        def hessian_product(d: FloatArray) -> FloatArray:
            return d + self._multiply_transpose(row_weights * (self.X @ d[:-1] + d[-1]))

        return cg(LinearOperator((len(g), len(g)), hessian_product, dtype=g.dtype), -g, rtol=1e-6)[0]

    def _multiply_transpose(self, r: FloatArray) -> FloatArray:
        """Return (X, 1)' @ r for r (n_samples,), whose last entry belongs to the intercept."""
        return np.append(self.X.T @ r, r.sum())


def _reach_tolerance(
    learner: LinearSVC, X: Matrix, y: IntArray, weights: FloatArray | None, max_steps: int = 20
) -> None:
    """Continue from the solution of LIBLINEAR with Newton's steps, until its tolerance is reached.

    `coef_` and `intercept_` of the fitted learner are changed in place. LIBLINEAR also stops when a
    step reduces the objective by less than 1e-12 of its value, about 1e-6 from the solution. Where
    it stops then depends on rounding, and so on the processor and on the order of the rows.
    """
    for k in range(len(learner.coef_)):
        sign = np.where(y == learner.classes_[k if len(learner.classes_) > 2 else 1], 1.0, -1.0)
        problem = _SquaredHinge(X, sign, weights, learner.C)
        rarer = max(min(np.count_nonzero(sign > 0), np.count_nonzero(sign < 0)), 1)
        v = np.append(learner.coef_[k], learner.intercept_[k])
        bound = learner.tol * rarer / len(y) * np.linalg.norm(problem.gradient(np.zeros_like(v))[0])
        v, norm = problem.minimise(v, bound, max_steps)
        learner.coef_[k] = v[:-1]
        learner.intercept_[k] = v[-1]
        if norm > bound:
            text = (
                f"LIBLINEAR and {max_steps} further steps did not reach tol: the norm of the gradient is "
                f"{norm:.1e}, and tol allows {bound:.1e}. Scale X, or use a larger tol."
            )
            warnings.warn(text, ConvergenceWarning, stacklevel=users_level())


def compute_margins(learner: Learner, matrix: Matrix) -> FloatArray:
    """Return the scores (n_rows,) of a fitted two-class learner; positive means its second class.

    A learner without scores gives its probability less 1/2, or +1/2 and -1/2 for its prediction.
    """
    if hasattr(learner, "decision_function"):
        return np.asarray(learner.decision_function(matrix))
    if hasattr(learner, "predict_proba"):
        return learner.predict_proba(matrix)[:, 1] - 0.5
    return np.where(learner.predict(matrix) == learner.classes_[1], 0.5, -0.5)


def compute_probabilities(learner: Learner, matrix: Matrix, sharpness: float = 1.0) -> FloatArray:
    """Return the class probabilities of a fitted learner: (n_rows, n_classes), as `classes_`.

    For a learner without probabilities, they are the logistic or softmax function of its scores
    times `sharpness`. Without scores, they are 1 for the predicted class.
    """
    if hasattr(learner, "predict_proba"):
        return learner.predict_proba(matrix)
    if not hasattr(learner, "decision_function"):
        return (learner.predict(matrix)[:, None] == learner.classes_).astype(np.float64)
    scores = sharpness * np.asarray(learner.decision_function(matrix))
    if scores.ndim == 1:
        second = logistic(scores)
        return np.column_stack([1 - second, second])
    return softmax(scores, axis=1)


def fit_sharpness(learner: Learner, matrix: Matrix, classes: IntArray) -> float:
    r"""Return the factor of a learner's scores that makes their softmax fit the classes best.

    .. math:: \min_{t > 0} -\sum_i \log \operatorname{softmax}(t\, s_i)_{y_i}

    Margins of an SVM are about as large for two classes as for two hundred. The softmax of such
    margins spreads the probability over all classes, so that no class has a large one. The factor
    is the inverse of the temperature in temperature scaling (Guo and others, ICML 2017). It is 1
    for a learner with probabilities, or without scores. Some of the training rows are enough to fit
    it.
    """
    if hasattr(learner, "predict_proba") or not hasattr(learner, "decision_function"):
        return 1.0
    scores = np.asarray(learner.decision_function(matrix), dtype=np.float64)
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros_like(scores), scores])
    own = np.searchsorted(learner.classes_, classes)

    def negative_log_likelihood(log_factor: float) -> float:
        return -float(log_softmax(np.exp(log_factor) * scores, axis=1)[np.arange(len(own)), own].mean())

    bounds = tuple(np.log(SHARPNESS_RANGE))
    best = minimize_scalar(negative_log_likelihood, bounds=bounds, method="bounded")
    return float(np.exp(best.x))


def logistic(scores: FloatArray) -> FloatArray:
    """Compute 1 / (1 + exp(-score)) without overflow, as a new array."""
    return 0.5 * (1 + np.tanh(0.5 * scores))


def get_tie_shift(votes: str, hard: float) -> float:
    """Return the shift of scores that makes ties positive, and changes no other sign.

    It is `hard` for hard votes, and the smallest positive number for soft votes.
    """
    return hard if votes == "hard" else float(np.finfo(np.float64).tiny)


def encode_sets(relevant: BoolArray) -> tuple[BoolArray, IntArray]:
    """Return the distinct rows of a boolean matrix, and the index (n_rows,) of each row among them.

    The distinct rows are in a fixed order, which depends on their bits only.
    """
    packed = np.packbits(relevant, axis=1)
    keys = np.ascontiguousarray(packed).view([("", packed.dtype)] * packed.shape[1]).ravel()
    _, first, code = np.unique(keys, return_index=True, return_inverse=True)
    return relevant[first], code


def fit_powerset(
    learner: Learner, inputs: Inputs, relevant: BoolArray, weights: FloatArray | None
) -> tuple[BoolArray, Learner | None, float]:
    """Fit a learner whose classes are the distinct label sets, the rows of a boolean matrix.

    Return these sets (n_sets, n_labels), the learner, which is None if there is only one set, and
    the factor of the learner's scores in soft votes.
    """
    sets, code = encode_sets(relevant)
    if len(sets) == 1:
        return sets, None, 1.0
    learner = fit_learner(learner, inputs, code, weights)
    rows = np.unique(np.linspace(0, len(code) - 1, ROWS_FOR_SHARPNESS).astype(int))
    return sets, learner, fit_sharpness(learner, inputs.matrix[rows], code[rows])


def compute_powerset_votes(
    sets: BoolArray, learner: Learner | None, matrix: Matrix, votes: str, sharpness: float = 1.0
) -> FloatArray:
    """Compute the vote (n_rows, n_labels) for each label from the results of :func:`fit_powerset`.

    The vote "hard" is 1 for the labels of the predicted set. The vote "soft" is the probability of
    all sets that contain the label.
    """
    if learner is None:
        return np.broadcast_to(sets[0].astype(np.float64), (matrix.shape[0], sets.shape[1]))
    if votes == "hard":
        return sets[learner.predict(matrix)].astype(np.float64)
    # Rounding may make a sum of probabilities larger than 1.
    shares = compute_probabilities(learner, matrix, sharpness) @ sets[learner.classes_].astype(np.float64)
    return np.minimum(shares, 1.0)


def fit_chain(
    learner: Learner, inputs: Inputs, relevant: BoolArray, weights: FloatArray | None, order: IntArray,
    rows: IntArray | None,
) -> tuple[ClassifierChain | None, IntArray, FloatArray]:  # fmt: skip
    """Return a chain over the labels that are not constant, these labels, and the constant votes.

    `order` is a permutation of all labels. `rows` are indices of the rows to learn from, or None
    for all. The labels are ascending indices. The votes (n_labels,) are those of the first row, so
    that only the entries of constant labels have a meaning. The chain is None if all labels are
    constant. `learner` is cloned.
    """
    if rows is not None:
        relevant = relevant[rows]
        weights = None if weights is None else weights[rows]
    constants = relevant[0].astype(np.float64)
    labels = np.flatnonzero((relevant != relevant[0]).any(axis=0))
    if not len(labels):
        return None, labels, constants
    place = {label: position for position, label in enumerate(labels)}
    chain = ClassifierChain(clone(learner), order=[place[label] for label in order if label in place])
    X = inputs.take(rows)
    Y = relevant[:, labels].astype(np.int64)
    # scikit-learn passes row weights to the learners of a chain only by metadata routing.
    with config_context(assume_finite=True, enable_metadata_routing=weights is not None):
        if weights is None:
            chain.fit(X, Y)
        else:
            check_accepts_weights(chain.estimator)
            chain.estimator.set_fit_request(sample_weight=True)
            chain.fit(X, Y, sample_weight=weights)
    return chain, labels, constants


def compute_chain_votes(chain: ClassifierChain, rows: Matrix, soft: bool) -> FloatArray:
    """Return the votes of one chain for its labels, 0/1 or probabilities: (n_rows, n_labels).

    Its columns are in the order of the labels that `fit_chain` returned with the chain.
    """
    learners = chain.estimators_
    m = rows.shape[1]
    # One product with the rows serves all linear learners: only the label columns change between them.
    linear = all(isinstance(learner, LinearSVC) for learner in learners)
    if linear:
        coef = np.stack([learner.coef_[0, :m] for learner in learners])
        scores = np.asarray(rows @ coef.T) + np.concatenate([learner.intercept_ for learner in learners])
    predicted, shares = (np.zeros((rows.shape[0], len(learners))) for _ in range(2))
    for step, learner in enumerate(learners):
        before = predicted[:, :step]
        if linear:
            score = scores[:, step] + before @ learner.coef_[0, m:]
            # LinearSVC predicts by the same rule.
            predicted[:, step] = score > 0
            shares[:, step] = logistic(score)
            continue
        extended = sparse.hstack([rows, before], format="csr") if sparse.issparse(rows) else np.hstack([rows, before])
        predicted[:, step] = learner.predict(extended)
        if soft:
            shares[:, step] = compute_probabilities(learner, extended)[:, 1]
    return (shares if soft else predicted)[:, np.argsort(chain.order_)]


def learns_one_label(model: Any) -> bool:
    """Tell whether a classifier of scikit-learn, perhaps at the end of a pipeline, rejects label matrices.

    Classifiers of other packages are never reported, because many do not declare their targets.

    Parameters
    ----------
    model : classifier, not fitted

    Returns
    -------
    bool

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> learns_one_label(LogisticRegression()), learns_one_label(KNeighborsClassifier())
    (True, False)
    """
    if not all(type(part).__module__.startswith("sklearn.") for part in iterate_parts(model, NOT_FITTED)):
        return False
    tags = get_tags(model)
    is_multi_label = tags.classifier_tags is None or tags.classifier_tags.multi_label or tags.target_tags.multi_output
    return not is_multi_label
