"""Similarity of labels in a model: cosines between their weights, and common factors."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.cluster.hierarchy import dendrogram, leaves_list, linkage
from scipy.spatial.distance import squareform
from sklearn.utils.validation import check_is_fitted

from rbrl._common.environment import import_extra
from rbrl._common.frames import as_dense
from rbrl._common.texts import format_label, shorten_name
from rbrl._common.typing import FloatArray, IntArray
from rbrl.inspection.terms import UnwrappedModel, coefficients, reject_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

# Number of kernel values of a block: 128 MB.
LABEL_MAP_BLOCK_ENTRIES = 2**24
# Share of the largest singular value above which a singular value counts towards the rank, as in `rank_` of a model.
RANK_FLOOR = 1e-6
# Largest number of labels in a figure, and largest number of labels with room for numbers.
MAX_DRAWN_LABELS = 40
MAX_NUMBERED_LABELS = 16


@dataclass(frozen=True, repr=False)
class LabelMap:
    """Similarity of labels by their weights: labels are similar if a model scores them alike.

    Attributes
    ----------
    label_names : list
        Names of the labels, or their columns.
    singular_values : array (rank,)
        Singular values of the weights, the largest first.
    factors : array (n_labels, rank)
        Coordinates of the weights of each label with respect to their singular vectors. The inner
        products of the rows are those of the weights. The largest entry of each column is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl import RBRLClassifier, label_map
    >>> X = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> Y = [[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 1]]
    >>> found = label_map(RBRLClassifier(label_names=["sea", "beach", "hill"]).fit(X, Y))
    >>> found.similarity.round(2).tolist()
    [[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
    >>> found.text(n_factors=0, n_pairs=1).splitlines()[1:]
    ['most alike:  sea and beach +1.00', 'most opposed:  sea and hill -1.00']
    >>> found.to_frame().loc["sea", ["beach", "hill"]].round(2).to_dict()
    {'beach': 1.0, 'hill': -1.0}
    >>> len(found.plot().axes)  # the tree, the matrix and the colour bar
    3
    """

    label_names: list[Any]
    singular_values: FloatArray
    factors: FloatArray

    @cached_property
    def similarity(self) -> FloatArray:
        """Cosines between the weights of labels (n_labels, n_labels); 0 for a label without weights, 1 on the diagonal."""
        lengths = np.linalg.norm(self.factors, axis=1, keepdims=True)
        directions = np.divide(self.factors, lengths, out=np.zeros_like(self.factors), where=lengths > 0)
        cosines = np.clip(directions @ directions.T, -1.0, 1.0)
        np.fill_diagonal(cosines, 1.0)
        return cosines

    @property
    def shares(self) -> FloatArray:
        """Shares of the factors in the squared weights (rank,)."""
        squares = self.singular_values**2
        return squares / max(float(squares.sum()), np.finfo(np.float64).tiny)

    @cached_property
    def tree(self) -> FloatArray:
        """Hierarchical clustering of two or more labels: SciPy's linkage by average distance 1 - cosine."""
        distances = squareform(1.0 - self.similarity, checks=False)
        return linkage(distances, "average", optimal_ordering=True)

    @property
    def order(self) -> IntArray:
        """Order of labels (n_labels,) in which similar labels are neighbours."""
        return leaves_list(self.tree) if len(self.label_names) > 2 else np.arange(len(self.label_names))

    def __str__(self) -> str:
        """Return the text with the default numbers of factors and pairs."""
        return self.text()

    __repr__ = __str__

    def text(self, n_factors: int = 3, n_pairs: int = 3) -> str:
        """Return a text with the largest factors and the most and least similar pairs of labels.

        Parameters
        ----------
        n_factors, n_pairs : int, default=3

        Returns
        -------
        str
        """
        n_labels, rank = self.factors.shape
        lines = [f"{n_labels} labels, weights of rank {rank}"]
        for k in range(min(n_factors, rank)):
            loads = self.factors[:, k] / np.abs(self.factors[:, k]).max()
            positive, negative = (self._format_loads(sign * loads) for sign in (1, -1))
            against = f"  against  {negative}" if negative else ""
            lines.append(f"factor {k + 1}, {self.shares[k]:.0%} of the squared weights:  {positive}{against}")
        for title, sign in (("most alike", 1), ("most opposed", -1)):
            pairs = self._format_pairs(sign, n_pairs)
            lines += [f"{title}:  {', '.join(pairs)}"] if pairs else []
        return "\n".join(lines)

    def _format_loads(self, loads: FloatArray) -> str:
        """Return the labels with at least half of the largest load, the largest first; five at most.

        The loads (n_labels,) are divided by the largest absolute load.
        """
        chosen = [i for i in np.argsort(-loads, kind="stable") if loads[i] >= 0.5]
        return ", ".join(format_label(self.label_names[i]) for i in chosen[:5]) + (", ..." if len(chosen) > 5 else "")

    def _format_pairs(self, sign: int, n_pairs: int) -> list[str]:
        """Return texts of the pairs of labels with the largest cosines, or the smallest for `sign` -1.

        There are at most `n_pairs`, and fewer if there are fewer pairs.
        """
        a, b = np.triu_indices(len(self.label_names), 1)
        # Rounding makes cosines equal that differ only in the last digits; + 0.0 turns -0 into 0.
        cosines = self.similarity[a, b].round(9) + 0.0
        names = [format_label(name) for name in self.label_names]
        order = np.argsort(-sign * cosines, kind="stable")[:n_pairs]
        return [f"{names[a[i]]} and {names[b[i]]} {cosines[i]:+.2f}" for i in order]

    def to_frame(self) -> "DataFrame":
        """Return the cosines between all labels, with similar labels as neighbours.

        Returns
        -------
        DataFrame (n_labels, n_labels)
        """
        pd = import_extra("pandas", "report", "A table of the labels")
        names = [self.label_names[i] for i in self.order]
        return pd.DataFrame(self.similarity[np.ix_(self.order, self.order)], index=names, columns=names)

    def plot(self) -> "Figure":
        """Draw the cosines between labels, and the tree of their hierarchical clustering.

        If there are more than 40 labels, the labels with the largest weights are drawn.

        Returns
        -------
        matplotlib Figure
        """
        style = import_extra("rbrl.experiments.figures", "report", "Drawing figures")
        drawn, title = self._largest_labels()
        order = drawn.order
        n_labels = len(order)
        names = [shorten_name(str(drawn.label_names[i])) for i in order]
        cosines = drawn.similarity[np.ix_(order, order)]
        size = 1.2 + (0.3 if n_labels <= MAX_NUMBERED_LABELS else 0.19) * n_labels
        with style.use_style():
            figure = style.Figure(figsize=(size + 2.2, size), layout="constrained")
            tree, axes = figure.subplots(1, 2, width_ratios=(1, 5), sharey=True)
            figure.suptitle(title, x=0.01, ha="left", fontsize=9.5, weight="bold")
            image = axes.imshow(cosines, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
            axes.set_xticks(range(n_labels), names, rotation=90, fontsize=8, color=style.INK)
            axes.yaxis.tick_right()
            axes.set_yticks(range(n_labels), names, fontsize=8, color=style.INK)
            axes.tick_params(length=0, labelright=True)
            axes.grid(visible=False)
            axes.spines[:].set_visible(False)
            if n_labels <= MAX_NUMBERED_LABELS:
                _write_cosines(axes, cosines, style.INK)
            if n_labels > 2:
                _draw_tree(tree, drawn.tree, style.MUTED)
            tree.axis("off")
            bar = figure.colorbar(image, ax=axes, shrink=0.6, pad=0.02, ticks=[-1, 0, 1])
            bar.ax.set_yticklabels(["opposed", "unrelated", "alike"])
        return figure

    def _largest_labels(self) -> "tuple[LabelMap, str]":
        """Return a map of the labels to draw, and its title."""
        n_labels = len(self.label_names)
        if n_labels <= MAX_DRAWN_LABELS:
            return self, "Cosines between the weights of labels"
        largest = np.argsort(-np.linalg.norm(self.factors, axis=1), kind="stable")[:MAX_DRAWN_LABELS]
        chosen = np.sort(largest)
        part = replace(self, label_names=[self.label_names[i] for i in chosen], factors=self.factors[chosen])
        return part, f"Cosines between the {MAX_DRAWN_LABELS} largest weights of {n_labels} labels"


def _write_cosines(axes: "Axes", cosines: FloatArray, ink: str) -> None:
    """Write the cosines into the cells, except for the diagonal; white on dark cells."""
    for (i, j), value in np.ndenumerate(cosines):
        if i != j:
            text = f"{value:.1f}".replace("0.", ".") if abs(value) >= 0.05 else "0"
            axes.text(j, i, text, ha="center", va="center", fontsize=7, color="white" if abs(value) > 0.65 else ink)


def _draw_tree(axes: "Axes", tree: FloatArray, colour: str) -> None:
    """Draw the clustering to the left, with the leaves at the rows of the matrix.

    `tree` is SciPy's linkage (n_labels - 1, 4).
    """
    drawn = dendrogram(tree, no_plot=True)
    for positions, distances in zip(drawn["icoord"], drawn["dcoord"]):
        axes.plot(distances, (np.array(positions) - 5) / 10, color=colour, lw=1.1)
    axes.invert_xaxis()


def label_map(model: Any) -> LabelMap:
    r"""Compute the similarity of labels from the weights of a model.

    The weights of all labels, :math:`W = U \operatorname{diag}(\sigma) V'`, show in which directions
    labels vary together. A low rank means that many labels share few directions. The weights of a
    kernel model are functions with the inner products :math:`A'KA`, where A are the coefficients and
    K is the kernel matrix of the training rows. Intercepts and thresholds, which depend on the
    frequency of a label, are left out.

    Parameters
    ----------
    model : fitted classifier
        Model that :func:`rbrl.explain` accepts, or a kernel model with an approximation. The weights
        of a pipeline are those of its classifier.

    Returns
    -------
    LabelMap
        Map to print, with the methods `to_frame` and `plot`.

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
    unwrapped = UnwrappedModel.unwrap(model)
    weights = _label_weights(unwrapped)
    U, sigma, _ = np.linalg.svd(weights, full_matrices=False)
    rank = int(np.count_nonzero(sigma > RANK_FLOOR * sigma.max(initial=0.0)))
    factors = U[:, :rank] * sigma[:rank]
    largest = np.abs(factors).argmax(axis=0)
    factors = factors * np.sign(factors[largest, np.arange(rank)])
    return LabelMap(unwrapped.score_names(len(weights)), sigma[:rank], factors)


def _label_weights(model: UnwrappedModel) -> FloatArray:
    """Return a vector for each label, with the inner products of the weights of the labels.

    The shape is (n_labels, n_terms). A label without weights has zeros.
    """
    if getattr(model.classifier, "approximation", None) is not None:
        return as_dense(model.classifier.feature_coef_).astype(np.float64).T
    if model.is_kernel:
        return _function_weights(model)
    if model.learners is None:
        return model.weights
    rows = [None if learner is None else coefficients(learner)[0] for learner in model.learners]
    n_columns = next((len(row) for row in rows if row is not None), 1)
    return np.array([np.zeros(n_columns) if row is None else row for row in rows])


def _function_weights(model: UnwrappedModel) -> FloatArray:
    """Return a vector for each label of a kernel model: row j is label j of (n_labels, n_labels).

    Only their inner products A'KA have a meaning, because the basis is arbitrary. The kernel values
    are computed in blocks of rows. A model with kernel="precomputed" is rejected.
    """
    A = model.weights.T
    X = model.classifier.X_fit_
    if X is None:
        reject_model(model.classifier, "with kernel='precomputed' keeps no training rows to compare")
    step = max(1, LABEL_MAP_BLOCK_ENTRIES // len(A))
    blocks = (X[start : start + step] for start in range(0, len(A), step))
    inner = A.T @ np.vstack([model.kernel_values(block) @ A for block in blocks])
    values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
    return vectors * np.sqrt(np.maximum(values, 0.0))
