"""Checks of the rows and labels that a classifier receives, and the columns that it was fitted to."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from rbrl._common.categories import describe_refused_words, encode_categories, find_categories
from rbrl._common.checks import check_row_weights
from rbrl._common.features import check_features, explain_features, refuse_text
from rbrl._common.frames import check_no_mask, check_same_rows, label_values, missing_entries
from rbrl._common.texts import check_joined_texts
from rbrl._common.typing import ArrayLike, FloatArray, IntArray, Matrix
from rbrl.datasets import Columns, Dataset, Shards
from rbrl.decision import empty_share
from rbrl.estimators.named_answers import iterate_parts, label_names
from rbrl.exceptions import InvalidLabelsError
from rbrl.losses.weights import mean_weights
from rbrl.targets import SignedTargets, agreed_names, label_matrix

FLOATS = [np.float64, np.float32]


def can_skip_checks(model: Any, X: Any) -> bool:
    """Return whether the checks of scikit-learn would accept rows without a change.

    This is so for a finite array or CSR matrix of floats with the number of columns that the model
    was fitted to, if these columns have no names. Everything else goes to the checks of
    scikit-learn, which take longer than the prediction of a single row.

    Parameters
    ----------
    model : classifier
    X : object
        Rows to predict labels for.
    """
    is_sparse = type(X) in (sparse.csr_array, sparse.csr_matrix)
    if not (is_sparse or type(X) is np.ndarray):
        return False
    if X.ndim != 2 or X.dtype not in FLOATS or not X.shape[0]:
        return False
    if X.shape[1] != getattr(model, "n_features_in_", None) or hasattr(model, "feature_names_in_"):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.add.reduce(X.data if is_sparse else X, axis=None)))


def validate_labelled_rows(model: Any, X: Any, y: Any, reset: bool = True) -> tuple[Matrix, Any]:
    """Validate rows and labels as scikit-learn does, but accept missing labels in a label matrix.

    Parameters
    ----------
    model : estimator
        Estimator that stores the columns of X, or with ``reset=False`` compares them.
    X : array, sparse matrix or data frame (n_samples, n_features)
    y : array, sparse matrix or data frame (n_samples, n_labels); or (n_samples,), classes
    reset : bool, default=True

    Returns
    -------
    X : array or CSR matrix of floats
    y : array or CSR matrix
    """
    values: Any = None if y is None else label_values(y).values
    missing = None if y is None else missing_entries(values)
    # scikit-learn rejects every NaN: missing labels are replaced during its checks.
    known = values if missing is None else np.where(missing, 1.0, values)
    X, known = validate_rows(model, X, known, multi_output=True, reset=reset)
    return X, known if missing is None else np.where(missing, np.nan, known)


def validate_rows(model: Any, X: Any, *y: Any, **options: Any) -> Any:
    """Call scikit-learn's `validate_data`, with errors that name the columns, their values and a solution.

    Parameters
    ----------
    model : estimator
    X : array, sparse matrix or data frame (n_samples, n_features)
    *y, **options
        Further arguments of `validate_data`.

    Returns
    -------
    X, a float array or CSR matrix; or X and y
    """
    if type(X) is not np.ndarray or X.dtype.kind not in "biuf":
        check_features(X, type(model).__name__)
        X = _encode_words(model, X, options.get("reset", True))
    try:
        return validate_data(model, X, *y, accept_sparse="csr", dtype=FLOATS, **options)
    except (TypeError, ValueError) as error:
        refuse_text(X, type(model).__name__, describe_refused_words(X))
        raise explain_features(model, X, error, *y) from error


def _encode_words(model: Any, X: Any, reset: bool) -> Any:
    """Return rows with columns of 0/1 in place of columns of words; store the words with `reset`."""
    if reset:
        vars(model).pop("categories_", None)
        if categories := find_categories(X):
            model.categories_ = categories
    return encode_categories(X, getattr(model, "categories_", {}))


def check_training_data(
    model: Any, X: Any, y: Any, sample_weight: ArrayLike | None = None
) -> tuple[Matrix, IntArray, FloatArray | None]:
    """Return checked rows, labels in {-1, 0, +1} and weights; store their coding and their columns in a classifier.

    Parameters
    ----------
    model : MultiLabelClassifier
    X, y, sample_weight
        Arguments of `fit`.

    Returns
    -------
    X : array or CSR matrix of floats (n_samples, n_features)
    Y : array (n_samples, n_labels) of int8, or SparseLabels
        `SparseLabels` if the labels are a sparse matrix and the model has `takes_sparse_labels`.
    weights : array (n_samples,) or None
    """
    owner = type(model).__name__
    are_sets = False
    if isinstance(X, Shards):
        raise ValueError(
            f"{owner} learns from rows in memory. Got {X!r}; load the rows as one file, or use a classifier that learns "
            "from files, such as RBRLClassifier."
        )
    if isinstance(X, Dataset):
        if y is not None:
            raise ValueError(f"A Dataset has its labels with it: pass no y. Got y of type {type(y).__name__}.")
        names = agreed_names(model.label_names, X.columns.label_names, X.n_labels)
        columns = replace(X.columns, label_names=names)
        X, labels = X.X, X.Y
    else:
        if not (isinstance(y, np.ndarray) and sample_weight is None):
            check_same_rows(X=X, y=y, sample_weight=sample_weight)
        labels, names = label_matrix(y, model.label_names, sets_as_sparse=model.takes_sparse_labels)
        columns = Columns(label_names=names)
        are_sets = labels is not y
    if sample_weight is not None:
        check_no_mask(sample_weight=sample_weight)
    X, y = validate_labelled_rows(model, X, labels)
    model.targets_ = SignedTargets().fit(labels)
    if are_sets:
        # They are a sparse matrix only here, to save memory. Predictions are dense.
        model.targets_.sparse_container = None
    if not model.targets_.is_matrix:
        check_joined_texts(labels)
    weights = None if sample_weight is None else check_row_weights(sample_weight, X.shape[0])
    store_columns(model, columns)
    Y = model.targets_.encode(y, keep_sparse=model.takes_sparse_labels)
    if not (model.takes_missing or Y.all()):
        raise InvalidLabelsError(
            f"{owner} needs to know every label of every row. Got y with "
            f"{np.count_nonzero(Y == 0)} of {Y.size} entries missing (NaN). Fill them in, or use "
            "BinaryRelevance, RBRLClassifier, BRLClassifier or CPNL, which learn from the known entries."
        )
    model.empty_share_ = empty_share(Y, mean_weights(Y, weights))
    return X, Y, weights


def get_columns(model: Any) -> Columns:
    """Return the columns that a model, or a pipeline with a model at its end, was fitted to.

    Examples
    --------
    >>> from rbrl import BRLClassifier
    >>> get_columns(BRLClassifier().fit([[0.0], [1.0]], [[0, 1], [1, 0]])).n_labels
    2
    """
    all_targets = (part.targets_ for part in iterate_parts(model) if hasattr(part, "targets_"))
    targets = next(all_targets, None)
    features = getattr(model, "feature_names_in_", None)
    labels = label_names(model)
    return Columns(
        n_features=model.n_features_in_,
        n_labels=targets.n_columns if targets is not None and targets.is_matrix else None,
        feature_names=None if features is None else tuple(map(str, features)),
        label_names=None if labels is None else tuple(labels),
        first_feature=getattr(model, "first_feature_", None),
        first_label=getattr(model, "first_label_", None),
        ignored=tuple(getattr(model, "ignored_columns_", ())),
        label_words=dict(getattr(model, "label_words_", {})),
        categories=dict(getattr(model, "categories_", {})),
    )


def store_columns(model: Any, columns: Columns) -> None:
    """Store the columns that a classifier or a pipeline was fitted to as its attributes.

    Feature names that scikit-learn has stored itself stay, if `columns` has none.
    """
    attributes = {
        "label_names_": None if columns.label_names is None else _as_text(columns.label_names),
        "first_feature_": columns.first_feature,
        "first_label_": columns.first_label,
        "ignored_columns_": list(columns.ignored) or None,
        "label_words_": dict(columns.label_words) or None,
    }
    is_pipeline = hasattr(model, "steps")
    for part in (model, model[-1]) if is_pipeline else (model,):
        for name, value in attributes.items():
            vars(part).pop(name, None)
            if value is not None:
                setattr(part, name, value)
        # The words of a data frame were stored by the checks of its rows.
        if columns.categories:
            part.categories_ = {name: list(words) for name, words in columns.categories.items()}
    if columns.feature_names is not None:
        first = model[0] if is_pipeline else model
        first.feature_names_in_ = _as_text(columns.feature_names)


def _as_text(names: Iterable[object]) -> Any:
    """Return names as an array (n_names,) of text of one width.

    A model file with one object for each of 50,000 names takes seconds to load.
    """
    return np.array([str(name) for name in names], dtype=np.str_)
