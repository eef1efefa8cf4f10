"""Which labels a model ties together: how alike their weights are, and the factors that they are made of."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.validation import check_is_fitted

from rbrl._common.extras import import_extra
from rbrl._common.typing import FloatArray, IntArray, Matrix
from rbrl.estimators import BinaryRelevance
from rbrl.inspection.explanation import called, score_names
from rbrl.inspection.opened import Opened, as_dense, coefficients, is_kernel_model, kernel_values, refuse

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

# Kernel values at a time: 128 MB.
BLOCK_ENTRIES = 2**24
# A singular value counts towards the rank above this share of the largest, as in `rank_` of a model.
RANK_FLOOR = 1e-6


@dataclass(frozen=True, repr=False)
class LabelMap:
    """Labels by their weights: near each other where a model scores them alike.

    Attributes
    ----------
    label_names : list
        Names of the labels, or their columns.
    singular_values : array (rank,)
        Of the weights, the largest first.
    factors : array (n_labels, rank)
        How much of each factor a label is made of: the weights in the coordinates of their singular vectors, so that the
        inner products of its rows are those of the labels' weights. In each column the largest entry is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl import RBRLClassifier, label_map
    >>> X = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> Y = [[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 1]]
    >>> found = label_map(RBRLClassifier(label_names=["sea", "beach", "hill"]).fit(X, Y))
    >>> found.similarity.round(2).tolist()
    [[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
    """

    label_names: list[Any]
    singular_values: FloatArray
    factors: FloatArray

    @cached_property
    def similarity(self) -> FloatArray:
        """Cosines between the weights of two labels, (n_labels, n_labels); 0 for a label without weights."""
        lengths = np.linalg.norm(self.factors, axis=1, keepdims=True)
        directions = np.divide(self.factors, lengths, out=np.zeros_like(self.factors), where=lengths > 0)
        cosines = np.clip(directions @ directions.T, -1.0, 1.0)
        np.fill_diagonal(cosines, 1.0)
        return cosines

    @property
    def shares(self) -> FloatArray:
        """Of each factor, its share of the squared weights: (rank,)."""
        squares = self.singular_values**2
        return squares / max(float(squares.sum()), np.finfo(np.float64).tiny)

    @cached_property
    def tree(self) -> FloatArray:
        """Labels joined pair by pair, the most alike first: SciPy's linkage, by average distance 1 - cosine."""
        distances = squareform(1.0 - self.similarity, checks=False)
        return linkage(distances, "average", optimal_ordering=True)

    @property
    def order(self) -> IntArray:
        """Labels in an order that has those next to each other that are alike: (n_labels,)."""
        return leaves_list(self.tree) if len(self.label_names) > 2 else np.arange(len(self.label_names))

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def text(self, n_factors: int = 3, n_pairs: int = 3) -> str:
        """The largest factors with their labels, and the pairs of labels that are most and least alike.

        Parameters
        ----------
        n_factors, n_pairs : int, default=3

        Returns
        -------
        str

        Examples
        --------
        >>> import numpy as np
        >>> from rbrl import RBRLClassifier, label_map
        >>> X = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
        >>> Y = [[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 1]]
        >>> found = label_map(RBRLClassifier(label_names=["sea", "beach", "hill"]).fit(X, Y))
        >>> found.text(n_factors=0, n_pairs=1).splitlines()[1:]
        ['most alike:  sea and beach +1.00', 'most opposed:  sea and hill -1.00']
        """
        n_labels, rank = self.factors.shape
        lines = [f"{n_labels} labels, weights of rank {rank}"]
        for k in range(min(n_factors, rank)):
            loads = self.factors[:, k] / np.abs(self.factors[:, k]).max()
            sides = [self._names_of(sign * loads) for sign in (1, -1)]
            against = f"  against  {sides[1]}" if sides[1] else ""
            lines.append(f"factor {k + 1}, {self.shares[k]:.0%} of the squared weights:  {sides[0]}{against}")
        for title, sign in (("most alike", 1), ("most opposed", -1)):
            pairs = [f"{called(a)} and {called(b)} {cosine:+.2f}" for a, b, cosine in self._pairs(sign, n_pairs)]
            lines += [f"{title}:  {', '.join(pairs)}"] if pairs else []
        return "\n".join(lines)

    def _names_of(self, loads: FloatArray) -> str:
        """Labels on one side of a factor that reach half as far as its first, the largest first; five at most."""
        chosen = [i for i in np.argsort(-loads, kind="stable") if loads[i] >= 0.5]
        return ", ".join(called(self.label_names[i]) for i in chosen[:5]) + (", ..." if len(chosen) > 5 else "")

    def _pairs(self, sign: int, n_pairs: int) -> list[tuple[Any, Any, float]]:
        """The pairs of labels with the largest cosines, or with sign -1 the smallest, the first of equal ones first."""
        a, b = np.triu_indices(len(self.label_names), 1)
        # Rounded, since what is equal on paper may differ in the last digit; + 0.0 leaves no -0.
        cosines = self.similarity[a, b].round(9) + 0.0
        order = np.argsort(-sign * cosines, kind="stable")[:n_pairs]
        return [(self.label_names[a[i]], self.label_names[b[i]], float(cosines[i])) for i in order]

    def to_frame(self) -> "DataFrame":
        """The cosines between all labels, in a frame with their names on both sides, labels that are alike together.

        Returns
        -------
        DataFrame (n_labels, n_labels)

        Examples
        --------
        >>> import numpy as np
        >>> from rbrl import RBRLClassifier, label_map
        >>> X = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
        >>> Y = [[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 1]]
        >>> found = label_map(RBRLClassifier(label_names=["sea", "beach", "hill"]).fit(X, Y))
        >>> found.to_frame().loc["sea", ["beach", "hill"]].round(2).to_dict()
        {'beach': 1.0, 'hill': -1.0}
        """
        pd = import_extra("pandas", "report", "A table of the labels")
        names = [self.label_names[i] for i in self.order]
        return pd.DataFrame(self.similarity[np.ix_(self.order, self.order)], index=names, columns=names)

    def plot(self) -> "Figure":
        """Draw the cosines between all labels, those that are alike together, with the tree that joins them.

        Returns
        -------
        matplotlib Figure

        Examples
        --------
        >>> import numpy as np
        >>> from rbrl import RBRLClassifier, label_map
        >>> X = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
        >>> Y = [[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 1]]
        >>> found = label_map(RBRLClassifier(label_names=["sea", "beach", "hill"]).fit(X, Y))
        >>> len(found.plot().axes)  # the tree, the matrix, the bar of its colours
        3
        """
        from rbrl.inspection.figures import draw_label_map

        return draw_label_map(self)


def label_map(model: Any) -> LabelMap:
    r"""Which labels the weights of a model tie together.

    The weights of all labels, :math:`W = U \operatorname{diag}(\sigma) V'`, say in which directions labels move together:
    a low rank means that many labels share few of them. Of a kernel model the weights are functions; their inner products
    are :math:`A'KA`, with the coefficients A and the kernel matrix K of the training rows. Intercepts and thresholds, which
    say how frequent a label is, are left out.

    Parameters
    ----------
    model : fitted classifier
        As for :func:`rbrl.explain`, and kernel models with an approximation; of a pipeline, the weights of what its
        classifier is given.

    Returns
    -------
    LabelMap
        Print it, or see its `to_frame` and `plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl import BRLClassifier, label_map
    >>> X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> Y = np.array([[1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 0, 0]])
    >>> found = label_map(BRLClassifier().fit(X, Y))
    >>> found.similarity[0, 1] > 0.99
    np.True_
    """
    check_is_fitted(model)
    opened = Opened.of(model)
    weights = _label_weights(opened.classifier)
    U, sigma, _ = np.linalg.svd(weights, full_matrices=False)
    rank = int(np.count_nonzero(sigma > RANK_FLOOR * sigma.max(initial=0.0)))
    factors = U[:, :rank] * sigma[:rank]
    largest = np.abs(factors).argmax(axis=0)
    factors = factors * np.sign(factors[largest, np.arange(rank)])
    return LabelMap(score_names(opened, len(weights)), sigma[:rank], factors)


def _label_weights(classifier: Any) -> FloatArray:
    """Vectors of the labels whose inner products are those of their weights: (n_labels, n_columns)."""
    if getattr(classifier, "approximation", None) is not None:
        return as_dense(classifier.feature_coef_).T
    if is_kernel_model(classifier):
        return _function_weights(classifier)
    bank = isinstance(classifier, OneVsRestClassifier) or getattr(classifier, "estimator", None) is not None
    if isinstance(classifier, BinaryRelevance | OneVsRestClassifier) and bank:
        return _learners_weights(classifier)
    return coefficients(classifier)


def _learners_weights(classifier: Any) -> FloatArray:
    rows = [None if learner is None else coefficients(learner)[0] for learner in classifier.estimators_]
    n_columns = next((len(row) for row in rows if row is not None), 1)
    return np.array([np.zeros(n_columns) if row is None else row for row in rows])


def _function_weights(classifier: Any) -> FloatArray:
    A, X = as_dense(classifier.dual_coef_), classifier.X_fit_
    if X is None:
        refuse(classifier, "with kernel='precomputed' keeps no training rows to compare its functions on")
    inner = A.T @ _kernel_product(classifier, X, A)
    values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _kernel_product(classifier: Any, X: Matrix, A: FloatArray) -> FloatArray:
    step = max(1, BLOCK_ENTRIES // len(A))
    return np.vstack([kernel_values(classifier, X[i : i + step]) @ A for i in range(0, len(A), step)])
