"""Held-out scores of any classifier: scores of rows that their model has not seen."""

from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import check_array, column_or_1d, indexable
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import validate_data

from rbrl._common.frames import check_no_mask, check_same_rows, label_values, missing_entries
from rbrl._common.texts import check_joined_texts
from rbrl._common.typing import Array, FloatArray, IntArray, MatrixLike
from rbrl.estimators.base import MultiLabelClassifier
from rbrl.estimators.convex import ConvexClassifier
from rbrl.estimators.named_answers import find_label_names_parameter, set_label_names
from rbrl.estimators.training_scores import THRESHOLD_SET_LATER
from rbrl.targets import SignedTargets, label_matrix

# Probabilities are clipped at this distance from 0 and 1 before their log-odds are computed.
PROBABILITY_MARGIN = 1e-4


def check_targets(owner: Any, X: MatrixLike, y: Any) -> tuple[Any, SignedTargets, list[str] | None]:
    """Return the checked targets of a meta-estimator, their coding, and the names of the labels.

    The meta-estimator `owner` also stores the names and the number of the columns of X.
    """
    if y is None:
        raise ValueError(f"{type(owner).__name__} requires y to be passed, but the target y is None.")
    check_same_rows(X=X, y=y)
    check_no_mask(X=X)
    given, names = label_matrix(y, find_label_names_parameter(owner))
    values = label_values(given).values
    finite = missing_entries(values) is None or "allow-nan"
    y = check_array(values, accept_sparse="csr", ensure_2d=False, dtype=None, input_name="y", ensure_all_finite=finite)
    validate_data(owner, X, y, skip_check_array=True)
    targets = SignedTargets().fit(given)
    if not targets.is_matrix:
        check_joined_texts(given)
    return (y if targets.is_matrix else column_or_1d(y, warn=True)), targets, names


class FittedClassifier(NamedTuple):
    """A fitted classifier, and the columns of the labels that it was fitted to; None means all."""

    model: Any
    columns: IntArray | None

    def scores(self, X: MatrixLike, targets: SignedTargets) -> FloatArray:
        """Return its decision function, or the log-odds of its probabilities.

        Labels that the classifier was not fitted to have the score NaN.
        """
        columns = np.arange(targets.n_columns) if self.columns is None else self.columns
        if targets.kind == "multiclass":
            columns = np.searchsorted(targets.classes_, self.model.classes_)
        score = _decisions if hasattr(self.model, "decision_function") else _log_odds
        found = score(self.model, X, len(columns))
        if found.shape[1] != len(columns):
            raise ValueError(
                f"{type(self.model).__name__} must score each of the {len(columns)} labels that it was fitted to. Got "
                f"scores of shape {found.shape} instead."
            )
        scores = np.full((len(found), targets.n_columns), np.nan)
        scores[:, columns] = found
        return scores


def fit_varying_labels(
    estimator: Any, X: MatrixLike, y: Any, targets: SignedTargets, weights: FloatArray | None = None
) -> FittedClassifier | None:
    """Fit a classifier in place; leave out constant labels, unless it is a classifier of rbrl.

    Many classifiers reject a label that is constant in the training rows. The result is None if all
    labels are constant. The weights are the `sample_weight` of the classifier.
    """
    columns = None
    if targets.is_matrix and not isinstance(estimator, MultiLabelClassifier):
        Y = targets.encode(y)
        varying = (Y > 0).any(axis=0) & (Y < 0).any(axis=0)
        if not varying.any():
            return None
        if not varying.all():
            columns = np.flatnonzero(varying)
            y = y[:, columns]
            names = find_label_names_parameter(estimator)
            set_label_names(estimator, None if names is None else [str(names[j]) for j in columns.tolist()])
    options = {} if weights is None else {"sample_weight": weights}
    return FittedClassifier(fit_for_scores(estimator, X, y, **options), columns)


def fit_for_scores(estimator: Any, X: MatrixLike, y: Any, **options: Any) -> Any:
    """Fit a classifier whose predicted labels are not used, without warnings of empty predictions."""
    token = THRESHOLD_SET_LATER.set(True)
    try:
        return estimator.fit(X, y, **options)
    finally:
        THRESHOLD_SET_LATER.reset(token)


def held_out_scores(
    estimator: Any, X: MatrixLike, y: Any, targets: SignedTargets, cv: Any, *, random_state: int = 0,
    n_jobs: int | None = None, weights: FloatArray | None = None, fitted: Any = None,
) -> FloatArray:  # fmt: skip
    """Return the scores of every row by a model that was fitted without this row.

    Parameters
    ----------
    estimator : classifier
        Classifier with `decision_function` or `predict_proba`.
    X, y
        Arguments of its `fit`.
    targets : SignedTargets
        Coding of y.
    cv : int, splitter or iterable of splits
        Number of shuffled folds, or a splitter. The folds of a 1-D target are stratified.
    random_state : int, default=0
        Seed of the folds.
    n_jobs : int, default=None
        Number of folds in parallel.
    weights : array (n_samples,), default=None
        The `sample_weight` of the classifier.
    fitted : classifier, default=None
        Classifier fitted to all rows. Models with an objective start from its solution.

    Returns
    -------
    array (n_samples, n_columns)
        Scores; NaN if a label is constant in the training rows of a fold and was left out.
    """
    y = y.toarray() if sparse.issparse(y) else y  # a splitter does not accept a sparse y
    if isinstance(cv, int | np.integer):
        # Stratification puts each class into the training rows of every fold.
        folds = KFold if targets.is_matrix else StratifiedKFold
        cv = folds(int(cv), shuffle=True, random_state=random_state)
    X, y = indexable(X, y)
    splits = list(check_cv(cv).split(X, y))
    n_samples = len(y)
    times = np.bincount(np.concatenate([test for _, test in splits]), minlength=n_samples)
    if (times != 1).any():
        raise ValueError(
            f"cv must put every row into one test part. Got {np.count_nonzero(times != 1)} of {n_samples} rows that are "
            "in no test part or in several; use a KFold, or a number of folds."
        )
    task = _Task(estimator, X, y, targets, weights, fitted)
    found = Parallel(n_jobs=n_jobs)(delayed(_score_fold)(task, *split) for split in splits)
    scores = np.empty((n_samples, targets.n_columns))
    for (_, test), part in zip(splits, found):
        scores[test] = part
    return scores


class _Task(NamedTuple):
    """Arguments that all folds share."""

    estimator: Any
    X: Any
    y: Array
    targets: SignedTargets
    weights: FloatArray | None
    fitted: Any


def _score_fold(task: _Task, train: IntArray, test: IntArray) -> FloatArray:
    # A kernel matrix is reduced to the columns of the training rows.
    X_train, y_train = _safe_split(task.estimator, task.X, task.y, train)
    X_test, _ = _safe_split(task.estimator, task.X, task.y, test, train)
    model = clone(task.estimator)
    if isinstance(task.fitted, ConvexClassifier):
        _start_from(model, task.fitted, train)
    weights = None if task.weights is None else task.weights[train]
    fitted = fit_varying_labels(model, X_train, y_train, task.targets, weights)
    if fitted is None:
        return np.full((len(test), task.targets.n_columns), np.nan)
    return fitted.scores(X_test, task.targets)


def _start_from(model: ConvexClassifier, fitted: ConvexClassifier, rows: IntArray) -> None:
    """Let a model start from the solution for all rows."""
    if hasattr(fitted, "coef_"):
        model.coef_ = fitted.coef_
        model.intercept_ = fitted.intercept_
    elif hasattr(fitted, "dual_coef_"):
        model.dual_coef_ = fitted.dual_coef_[rows]
    model.set_params(warm_start=True)


def _decisions(model: Any, X: MatrixLike, n_columns: int) -> FloatArray:
    scores = np.asarray(model.decision_function(X))
    scores = scores[:, None] if scores.ndim == 1 else scores
    # If only two of several classes are in the training rows, they share one column.
    return np.hstack([-scores, scores]) if (n_columns, scores.shape[1]) == (2, 1) else scores


def _log_odds(model: Any, X: MatrixLike, n_columns: int) -> FloatArray:
    """Return the log-odds of `predict_proba`: a matrix, or a list with an array for each label."""
    if not hasattr(model, "predict_proba"):
        raise TypeError(
            f"Held-out scores need decision_function or predict_proba. Got {type(model).__name__}, which has neither."
        )
    found = model.predict_proba(X)
    if isinstance(found, list):
        pairs = zip(found, model.classes_)
        P = np.column_stack([P[:, np.asarray(classes) > 0].sum(axis=1) for P, classes in pairs])
    else:
        P = np.asarray(found)
        # A single label, or a binary target, has two columns.
        P = P[:, 1:] if (n_columns, P.shape[1]) == (1, 2) else P
    P = np.clip(P, PROBABILITY_MARGIN, 1 - PROBABILITY_MARGIN)
    return np.log(P / (1 - P))
