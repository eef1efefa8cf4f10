"""Graph nodes from scores to probabilities, thresholds and labels, as :mod:`rbrl.decision` computes them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rbrl._common.typing import FloatArray
from rbrl.decision import Chain, GlobalThreshold, LabelThresholds, NonEmpty, RowThreshold, TopK, ZeroThreshold
from rbrl.exceptions import ExportError
from rbrl.interop.onnx.graph import Graph, Value
from rbrl.targets import SignedTargets

# Function of a graph, a fitted rule, scores and the number of their columns; returns the shifted scores.
Shift = Callable[[Graph, Any, Value, int], Value]


def shift_scores(graph: Graph, rule: Any, scores: Value, n_labels: int) -> Value:
    """Add the scores whose positive entries are the labels that a fitted rule calls relevant.

    Parameters
    ----------
    graph : Graph
    rule : DecisionRule
        Rule of :mod:`rbrl.decision`; other rules raise ExportError.
    scores : str
    n_labels : int

    Returns
    -------
    str
    """
    if type(rule) not in SHIFTS:
        known = ", ".join(sorted(kind.__name__ for kind in SHIFTS))
        raise ExportError(f"The rule {type(rule).__name__} cannot be written as an ONNX graph. These can: {known}.")
    return SHIFTS[type(rule)](graph, rule, scores, n_labels)


def find_relevant(graph: Graph, scores: Value, n_labels: int, never_empty: bool) -> Value:
    """Add the mask (n_rows, n_labels) of the positive scores.

    With `never_empty`, a row without a positive score gets its best label, the first one of a tie.
    """
    positive = graph("Greater", scores, 0.0)
    if not never_empty:
        return positive
    is_best = graph("Equal", graph("ArgMax", scores, axis=1), np.arange(n_labels))
    is_empty = graph("LessOrEqual", graph("ReduceMax", scores, axes=[1]), 0.0)
    return graph("Or", positive, graph("And", is_empty, is_best))


def add_labels(graph: Graph, targets: SignedTargets, scores: Value, never_empty: bool) -> Value:
    """Add the predicted labels in the coding that `fit` received.

    Parameters
    ----------
    graph : Graph
    targets : SignedTargets
    scores : str
    never_empty : bool
        Whether a row without a positive score gets its best label.

    Returns
    -------
    str
    """
    if targets.kind == "multiclass":
        return graph("Gather", graph.constant(targets.classes_), graph("ArgMax", scores, axis=1, keepdims=0))
    is_relevant = find_relevant(graph, scores, targets.n_columns, never_empty and targets.is_matrix)
    ones = graph.cast(is_relevant, np.int64)
    if not targets.is_matrix:
        # If the target has a single class, the index is always 0.
        second = graph("Mul", graph("Squeeze", ones, np.array([1])), np.int64(len(targets.classes_) - 1))
        return graph("Gather", graph.constant(targets.classes_), second)
    if targets.low < 0:
        ones = graph("Sub", graph("Mul", ones, np.int64(2)), np.int64(1))
    return ones if targets.dtype == np.int64 else graph.cast(ones, targets.dtype)


def add_probabilities(graph: Graph, model: Any, scores: Value) -> Value:
    """Add the probabilities (n_rows, n_columns) of a calibrated model, by sigmoids or by interpolation.

    Parameters
    ----------
    graph : Graph
    model : CalibratedMultiLabelClassifier
    scores : str

    Returns
    -------
    str
    """
    smooth = graph("Sigmoid", graph("Add", graph("Mul", scores, model.slopes_), model.intercepts_))
    if not model.knots_:
        return smooth
    # A label of slope 0 has a constant probability.
    has_knots = model.slopes_ > 0
    knots = [knots if used else np.zeros((2, 1)) for knots, used in zip(model.knots_, has_knots)]
    return graph("Where", has_knots[None], _interpolate(graph, knots, scores), smooth)


def _interpolate(graph: Graph, knots: Sequence[FloatArray], scores: Value) -> Value:
    """Add a piecewise linear function of each column of scores, constant beyond its first and last knot.

    The last knot at or below a score is found by bisection. The knots of all labels are in one table, in which
    the part of each label is padded to a power of two.
    """
    width = 1 << (max(line.shape[1] for line in knots) - 1).bit_length()
    positions = np.full((len(knots), width), np.inf)
    values, slopes = np.zeros((2, len(knots), width))
    for j, (x, y) in enumerate(knots):
        positions[j, : len(x)] = x
        values[j, : len(x)] = y
        values[j, len(x) :] = y[-1]
        slopes[j, : len(x) - 1] = np.diff(y) / np.diff(x)
    table = graph.constant(positions.ravel().astype(graph.dtype))
    index = graph.constant(np.arange(len(knots))[None] * width)
    index = graph("Expand", index, graph("Shape", scores))
    step = width // 2
    while step:
        next_index = graph("Add", index, np.int64(step))
        is_above = graph("GreaterOrEqual", scores, graph("Gather", table, next_index))
        index = graph("Where", is_above, next_index, index)
        step //= 2
    distance = graph("Max", graph("Sub", scores, graph("Gather", table, index)), 0.0)
    rise = graph("Mul", distance, graph("Gather", slopes.ravel(), index))
    return graph("Add", graph("Gather", values.ravel(), index), rise)


def to_class_probabilities(graph: Graph, targets: SignedTargets, probabilities: Value) -> Value:
    """Add the result of `predict_proba`, in which the probabilities of classes sum to 1.

    Parameters
    ----------
    graph : Graph
    targets : SignedTargets
    probabilities : str
        Probabilities of the columns.

    Returns
    -------
    str
    """
    if targets.kind == "multiclass":
        return graph("Div", probabilities, graph("ReduceSum", probabilities, np.array([1])))
    if targets.is_matrix:
        return probabilities
    if len(targets.classes_) == 1:
        return graph("Add", graph("Mul", probabilities, 0.0), 1.0)
    return graph("Concat", graph("Sub", 1.0, probabilities), probabilities, axis=1)


def _chain(graph: Graph, rule: Chain, scores: Value, n_labels: int) -> Value:
    for one in rule.rules:
        scores = shift_scores(graph, one, scores, n_labels)
    return scores


def _row_threshold(graph: Graph, rule: RowThreshold, scores: Value, n_labels: int) -> Value:
    threshold = graph("Add", graph("MatMul", scores, rule.coef_[:, None]), float(rule.intercept_))
    shifted = graph("Sub", scores, threshold)
    return _make_positive(graph, shifted, graph("GreaterOrEqual", shifted, 0.0)) if rule.ties_relevant else shifted


def _non_empty(graph: Graph, rule: NonEmpty, scores: Value, n_labels: int) -> Value:
    return _make_positive(graph, scores, find_relevant(graph, scores, n_labels, never_empty=True))


def _top_k(graph: Graph, rule: TopK, scores: Value, n_labels: int) -> Value:
    k = int(rule.k)
    if k == 0:
        return graph("Sub", scores, graph("Add", graph("ReduceMax", scores, axes=[1]), 1.0))
    if k >= n_labels:
        shifted = graph("Sub", scores, graph("Sub", graph("ReduceMin", scores, axes=[1]), 1.0))
        return _make_positive(graph, shifted, graph("GreaterOrEqual", shifted, 0.0))
    # TopK of ONNX chooses the first of equal scores, as TopK of rbrl.decision does.
    sorted_scores, order = graph.pair("TopK", scores, np.array([k + 1]), axis=1)
    columns = np.array([1])
    ends = graph("Slice", sorted_scores, np.array([k - 1]), np.array([k + 1]), columns)
    best = graph("Unsqueeze", graph("Slice", order, np.array([0]), np.array([k]), columns), np.array([2]))
    is_one = graph.cast(graph("Equal", best, np.arange(n_labels)), np.int64)
    chosen = graph.cast(graph("ReduceMax", is_one, axes=[1], keepdims=0), np.bool_)
    return _make_positive(graph, graph("Sub", scores, graph("ReduceMean", ends, axes=[1])), chosen)


def _make_positive(graph: Graph, scores: Value, chosen: Value) -> Value:
    """Add scores of which exactly the chosen entries are positive, as `rbrl.decision.rules.make_positive` does."""
    tiny = float(np.finfo(graph.dtype).tiny)
    raised = graph("And", chosen, graph("LessOrEqual", scores, 0.0))
    scores = graph("Where", raised, tiny, scores)
    lowered = graph("And", graph("Not", chosen), graph("Greater", scores, 0.0))
    return graph("Where", lowered, 0.0, scores)


SHIFTS: dict[type, Shift] = {
    Chain: _chain,
    GlobalThreshold: lambda graph, rule, scores, n_labels: graph("Sub", scores, float(rule.threshold_)),
    LabelThresholds: lambda graph, rule, scores, n_labels: graph("Sub", scores, rule.thresholds_),
    NonEmpty: _non_empty,
    RowThreshold: _row_threshold,
    TopK: _top_k,
    ZeroThreshold: lambda graph, rule, scores, n_labels: scores,
}
