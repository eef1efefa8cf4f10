"""What all classifiers share: inputs are checked, labels encoded and decoded here; a subclass holds the method only."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from rbrl._common.bases import Estimator
from rbrl._common.checks import check_row_weights
from rbrl._common.frames import check_no_mask, check_same_rows, label_values, missing_entries
from rbrl._common.texts import check_joined_texts, refuse_text
from rbrl._common.typing import Array, FloatArray, IntArray, Matrix, MatrixLike
from rbrl.datasets import Columns, Dataset, Shards
from rbrl.decision import empty_share, filling_pays, relevant_labels
from rbrl.estimators.named_answers import NamedAnswers, label_names, parts_of
from rbrl.exceptions import InvalidLabelsError
from rbrl.losses.base import mean_weights
from rbrl.out_of_core.sources import feature_blocks
from rbrl.targets import SignedTargets, agreed_names, label_matrix

FLOATS = [np.float64, np.float32]
# Scores at a time, where not all of them are asked for: 32 MB.
BLOCK_ENTRIES = 2**22
# What predictions are made for; frames, and lists of parts (X, Y), are array-like.
Rows: TypeAlias = MatrixLike | Dataset | Shards
# Whether rows without a positive score get their best label: yes, no, or if few training rows have none.
Filling: TypeAlias = bool | Literal["auto"]


class FillsEmptyRows:
    """A classifier with the parameter `non_empty`: a row without a positive score may get its best label.

    Attributes
    ----------
    empty_share_ : float
        Share of the training rows that have no relevant label.

    Examples
    --------
    >>> from rbrl import BRLClassifier
    >>> model = BRLClassifier(non_empty="auto").fit([[0.0], [1.0]], [[0, 1], [1, 0]])
    >>> model.empty_share_, model.non_empty_
    (0.0, True)
    """

    non_empty: Filling = False
    empty_share_: float
    all_labelled_: bool  # instead of `empty_share_`, in a model file from before it
    # Parameters that only predictions depend on: a fitted model may be given others.
    decision_parameters: tuple[str, ...] = ("non_empty",)

    @property
    def non_empty_(self) -> bool:
        """Decision to fill empty rows: the parameter `non_empty`, or the value of "auto"."""
        if self.non_empty != "auto":
            return bool(self.non_empty)
        return filling_pays(self.empty_share_) if hasattr(self, "empty_share_") else self.all_labelled_


class MultiLabelClassifier(FillsEmptyRows, NamedAnswers, Estimator):
    """A scikit-learn classifier of label matrices.

    A subclass writes ``_check_parameters()``, ``_fit(X, Y, weights)`` with Y in {-1, +1}, and ``_scores(X)``. One that
    can learn where labels are missing says ``takes_missing = True``; Y then has 0 there.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : array (n_features_in_,), if X was a data frame or a :class:`rbrl.datasets.Dataset` with names
        Columns of other names are refused by the predictions; those of a `Dataset` or a file are put in this order.
    label_names_ : array (n_labels,), if the labels came with names
    first_feature_, first_label_ : {0, 1}, if the rows came from a svmlight file
        What it counted its columns from, for other such files.
    ignored_columns_ : list of str, if columns of the file were ignored
        Other files may have these columns, too.
    label_words_ : dict of str to int, if words were declared to mean that a label is relevant
        Words in label columns, and whether they mean 1 or 0.
    targets_ : SignedTargets
        The coding of the labels.
    classes_ : array (n_classes,), (n_labels,) or (n_labels, 2)
        Classes of a 1-D target, or column numbers of the labels. One or two labels have a row (irrelevant, relevant) each:
        scikit-learn's scorers would take one or two column numbers for the classes of a binary target.
    empty_share_ : float
        Share of the training rows that have no relevant label: ``non_empty="auto"`` fills empty predictions up to 2 %.

    Examples
    --------
    >>> import numpy as np
    >>> class Nearest(MultiLabelClassifier):
    ...     def _check_parameters(self):
    ...         pass
    ...
    ...     def _fit(self, X, Y, weights):
    ...         self.X_, self.Y_ = X, Y
    ...
    ...     def _scores(self, X):
    ...         return self.Y_[[np.abs(self.X_ - x).sum(axis=1).argmin() for x in X]].astype(float)
    >>> Nearest().fit([[0.0], [5.0]], [[0, 1], [1, 1]]).predict([[4.0]])
    array([[1, 1]])
    """

    n_features_in_: int
    feature_names_in_: Array
    first_feature_: int
    first_label_: int
    ignored_columns_: list[str]
    label_words_: dict[str, int]
    # Whether labels may be missing: entries of Y that are NaN for users and 0 inside.
    takes_missing: bool = False

    def fit(self, X: MatrixLike | Dataset, y: MatrixLike | None = None) -> Self:
        """Learn from rows X (n_samples, n_features) and their labels y (n_samples, n_labels), 0/1 or -1/+1.

        A :class:`rbrl.datasets.Dataset` has both, and the names of their columns: ``fit(dataset)``.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n_samples, n_features); or Dataset
        y : array, sparse matrix or data frame (n_samples, n_labels); or label sets; or (n_samples,), classes
            None with a `Dataset`. NaN, None, NA and a masked entry of a matrix are missing labels: a method with
            `takes_missing` learns from the other labels, and a method without it refuses them. An index of pandas must
            be that of X.

        Returns
        -------
        self
        """
        return self._learn(X, y)

    def fit_many(self, X: MatrixLike, y: MatrixLike, points: Iterable[Mapping[str, Any]]) -> Iterator[Self]:
        """Yield a fitted copy for each dict of parameters in `points`.

        A method whose models have work in common does it once; here they have none.

        Parameters
        ----------
        X, y
            As for `fit`.
        points : iterable of dict

        Yields
        ------
        fitted classifiers, in the order of `points`
        """
        for params in points:
            yield clone(self).set_params(**params).fit(X, y)

    def decision_function(self, X: Rows) -> FloatArray:
        """Scores of every label, (n_samples, n_labels); positive means relevant. 1-D for a binary 1-D target.

        Rows in blocks, such as :class:`rbrl.datasets.Shards`, are read one block at a time, here and for `predict`.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n_samples, n_features); or Dataset, Shards, or a list of parts (X, Y)

        Returns
        -------
        array (n_samples, n_labels); (n_samples,) for a binary 1-D target
        """
        scores = _joined(self._score_blocks(X, whole=True))
        return scores.ravel() if self.targets_.kind == "binary" else scores

    def predict(self, X: Rows) -> Array | sparse.sparray:
        """Labels in the coding that `fit` received: ``decision_function(X) > 0``.

        Predictions have the type of the labels that `fit` received. Those of a sparse matrix of any format are a CSR
        matrix, which scikit-learn's metrics take. Those of objects, of a frame or of a masked array are an array of
        numbers; see `set_output` for frames.

        With `non_empty_`, a row without a positive score gets its best label. Where `fit` received a sparse matrix the
        answer is sparse too, made block by block: the scores are never held all at once.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n_samples, n_features); or Dataset, Shards, or a list of parts (X, Y)

        Returns
        -------
        array or sparse matrix (n_samples, n_labels); array (n_samples,) for a 1-D target
        """
        check_fitted(self)
        container, never_empty = self.targets_.sparse_container, self.targets_.is_matrix and self.non_empty_
        blocks = self._score_blocks(X, whole=container is None)
        return _joined(
            (self.targets_.decode(relevant_labels(scores, never_empty), scores) for scores in blocks), container
        )

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise ValueError for a parameter that makes no sense."""

    @abstractmethod
    def _fit(self, X: Matrix, Y: IntArray, weights: FloatArray | None) -> None:
        """Learn from checked rows, labels in {-1, +1}, 0 where one is missing, and weights (None for ones)."""

    @abstractmethod
    def _scores(self, X: Matrix) -> FloatArray:
        """Scores of checked rows, (n_samples, n_columns)."""

    def _learn(self, X: MatrixLike | Dataset, y: MatrixLike | None, sample_weight: ArrayLike | None = None) -> Self:
        self._check_parameters()
        self._fit(*self._checked_data(X, y, sample_weight))
        return self

    def _checked_data(
        self, X: Rows, y: MatrixLike | None, sample_weight: ArrayLike | None = None
    ) -> tuple[Matrix, IntArray, FloatArray | None]:
        """Rows, labels in {-1, 0, +1} and weights to learn from; their coding and their columns are remembered."""
        if isinstance(X, Shards):
            raise ValueError(
                f"{type(self).__name__} learns from rows in memory. Got {X!r}; load the rows as one file, or use a "
                "classifier that learns from files, such as RBRLClassifier."
            )
        if isinstance(X, Dataset):
            if y is not None:
                raise ValueError(f"A Dataset has its labels with it: pass no y. Got y of type {type(y).__name__}.")
            names = agreed_names(self.label_names, X.columns.label_names, X.n_labels)
            columns, y, X = replace(X.columns, label_names=names), X.Y, X.X
        else:
            check_same_rows(X=X, y=y, sample_weight=sample_weight)
            y, names = label_matrix(y, self.label_names)
            columns = Columns(label_names=names)
        check_no_mask(sample_weight=sample_weight)
        given = y
        X, y = checked_labelled(self, X, given)
        self.targets_ = SignedTargets().fit(given)
        if not self.targets_.is_matrix:
            check_joined_texts(given)
        weights = None if sample_weight is None else check_row_weights(sample_weight, X.shape[0])
        remember_columns(self, columns)
        Y = self.targets_.encode(y)
        if not self.takes_missing:
            check_missing(self, Y)
        self.empty_share_ = empty_share(Y, mean_weights(Y, weights))
        return X, Y, weights

    def _checked_rows(self, X: Rows) -> Matrix:
        if needs_no_check(self, X):
            return cast(Matrix, X)
        check_is_fitted(self)
        if isinstance(X, Dataset):
            features_alone = replace(columns_of(self), n_labels=None, label_names=None)
            return check_array(X.matching(features_alone).X, accept_sparse="csr", dtype=FLOATS, estimator=self)
        return validated(self, X, reset=False)

    def _score_blocks(self, X: Rows, whole: bool = False) -> Iterator[FloatArray]:
        """Scores of some rows at a time; with `whole`, of all that are in memory together."""
        for rows in map(self._checked_rows, feature_blocks(X)):
            step = rows.shape[0] if whole else max(1, BLOCK_ENTRIES // self.targets_.n_columns)
            yield from (self._scores(rows[start : start + step]) for start in range(0, rows.shape[0], step))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


def check_fitted(model: Any) -> None:
    """scikit-learn's check, which takes longer than the scores of a row: it is asked only what to say of a model not fitted.

    Parameters
    ----------
    model : classifier
    """
    if not hasattr(model, "targets_"):
        check_is_fitted(model)


def needs_no_check(model: Any, X: Any) -> bool:
    """Whether the checks of rows would find nothing and change nothing: all that is left of them where rows come singly.

    So it is for a finite array or CSR matrix of floats, with as many columns as the model was fitted to, if these have no
    names. All else, right or wrong, is for scikit-learn to check and to word.

    Parameters
    ----------
    model : classifier
    X : anything that predictions are made for

    Returns
    -------
    bool
    """
    is_sparse = type(X) in (sparse.csr_array, sparse.csr_matrix)
    if not (is_sparse or type(X) is np.ndarray) or X.ndim != 2 or X.dtype not in FLOATS or not X.shape[0]:
        return False
    if X.shape[1] != getattr(model, "n_features_in_", None) or hasattr(model, "feature_names_in_"):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.add.reduce(X.data if is_sparse else X, axis=None)))


def check_missing(model: MultiLabelClassifier, Y: IntArray) -> None:
    """Refuse labels of which some are missing, for a method that does not take them.

    Parameters
    ----------
    model : MultiLabelClassifier
    Y : array (n_samples, n_labels) of int8
        In {-1, 0, +1}; 0 is missing.
    """
    if not Y.all():
        raise InvalidLabelsError(
            f"{type(model).__name__} needs to know every label of every row. Got y with {np.count_nonzero(Y == 0)} of "
            f"{Y.size} entries missing (NaN); BinaryRelevance, RBRLClassifier, BRLClassifier and CPNL learn from the "
            "others, or fill them in."
        )


def checked_labelled(model: Any, X: Any, y: Any, reset: bool = True) -> tuple[Matrix, Any]:
    """scikit-learn's checks of rows and labels, which let no NaN through, with those of a label matrix put back.

    Parameters
    ----------
    model : estimator
        It remembers the columns of X, or with ``reset=False`` compares them.
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
    known = values if missing is None else np.where(missing, 1.0, values)
    X, known = validated(model, X, known, multi_output=True, reset=reset)
    return X, known if missing is None else np.where(missing, np.nan, known)


def validated(model: Any, X: Any, *y: Any, **options: Any) -> Any:
    """scikit-learn's `validate_data`; of text among the features it says which, and what to do about it.

    Parameters
    ----------
    model : estimator
    X : array, sparse matrix or data frame (n_samples, n_features)
    *y, **options
        As for `validate_data`.

    Returns
    -------
    X, a float array or CSR matrix; or X and y
    """
    check_no_mask(X=X)
    try:
        return validate_data(model, X, *y, accept_sparse="csr", dtype=FLOATS, **options)
    except (TypeError, ValueError):
        refuse_text(X, type(model).__name__)
        raise


def _joined(blocks: Iterable[Any], container: Any = None) -> Any:
    """Blocks of rows in one array, or sparse matrix of the type `container`; one alone is not copied."""
    first, *more = blocks
    if not more:
        return first
    return container(sparse.vstack([first, *more])) if container else np.concatenate([first, *more])


def columns_of(model: Any) -> Columns:
    """What a fitted model, or a pipeline with one at its end, knows of the columns it was fitted on.

    Parameters
    ----------
    model : fitted classifier or pipeline

    Returns
    -------
    Columns

    Examples
    --------
    >>> from rbrl import BRLClassifier
    >>> columns_of(BRLClassifier().fit([[0.0], [1.0]], [[0, 1], [1, 0]])).n_labels
    2
    """
    targets = next((part.targets_ for part in parts_of(model) if hasattr(part, "targets_")), None)
    features, labels = getattr(model, "feature_names_in_", None), label_names(model)
    return Columns(
        n_features=model.n_features_in_,
        n_labels=targets.n_columns if targets is not None and targets.is_matrix else None,
        feature_names=None if features is None else tuple(map(str, features)),
        label_names=None if labels is None else tuple(labels),
        first_feature=getattr(model, "first_feature_", None),
        first_label=getattr(model, "first_label_", None),
        ignored=tuple(getattr(model, "ignored_columns_", ())),
        label_words=dict(getattr(model, "label_words_", {})),
    )


def remember_columns(model: Any, columns: Columns) -> None:
    """Let a fitted model, or a pipeline, know the columns it was fitted on; what scikit-learn has seen for itself stays.

    Names are kept as text of one width: a file with an object for each of 50,000 names takes seconds to load.

    Parameters
    ----------
    model : fitted classifier or pipeline
    columns : Columns
    """
    names = columns.label_names
    labels = None if names is None else np.array([str(name) for name in names], dtype=np.str_)
    known: dict[str, Any] = {"label_names_": labels}
    known |= {"first_feature_": columns.first_feature, "first_label_": columns.first_label}
    known |= {"ignored_columns_": list(columns.ignored) or None, "label_words_": dict(columns.label_words) or None}
    for part in (model, model[-1]) if hasattr(model, "steps") else (model,):
        for name, value in known.items():
            vars(part).pop(name, None)
            if value is not None:
                setattr(part, name, value)
    if columns.feature_names is not None:
        first = model[0] if hasattr(model, "steps") else model
        first.feature_names_in_ = np.array([str(name) for name in columns.feature_names], dtype=np.str_)
