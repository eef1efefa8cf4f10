"""Scores to probabilities, thresholds and labels, as nodes of a graph: what :mod:`rbrl.decision` does to arrays."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rbrl._common.typing import FloatArray
from rbrl.decision import Chain, GlobalThreshold, LabelThresholds, NonEmpty, RowThreshold, TopK, ZeroThreshold
from rbrl.exceptions import ExportError
from rbrl.onnx.graph import Graph, Value
from rbrl.targets import SignedTargets

# From a graph, a fitted rule, scores and the number of their columns to the scores that the rule moves.
Shift = Callable[[Graph, Any, Value, int], Value]


def shifted(graph: Graph, rule: Any, scores: Value, n_labels: int) -> Value:
    """Scores whose positive entries are the labels that a fitted rule calls relevant.

    Parameters
    ----------
    graph : Graph
    rule : DecisionRule
        Of :mod:`rbrl.decision`; others are refused by their name.
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


def relevant(graph: Graph, scores: Value, n_labels: int, never_empty: bool) -> Value:
    """Which scores are positive, and with `never_empty` the best one of rows that have none, the first on ties.

    Parameters
    ----------
    graph : Graph
    scores : str
    n_labels : int
    never_empty : bool

    Returns
    -------
    str
        Of bool (n_rows, n_labels).
    """
    positive = graph("Greater", scores, 0.0)
    if not never_empty:
        return positive
    is_best = graph("Equal", graph("ArgMax", scores, axis=1), np.arange(n_labels))
    is_empty = graph("LessOrEqual", graph("ReduceMax", scores, axes=[1]), 0.0)
    return graph("Or", positive, graph("And", is_empty, is_best))


def labels(graph: Graph, targets: SignedTargets, scores: Value, never_empty: bool) -> Value:
    """Answers in the coding that `fit` received.

    Parameters
    ----------
    graph : Graph
    targets : SignedTargets
    scores : str
    never_empty : bool

    Returns
    -------
    str
    """
    if targets.kind == "multiclass":
        return graph("Gather", graph.constant(targets.classes_), graph("ArgMax", scores, axis=1, keepdims=0))
    found = relevant(graph, scores, targets.n_columns, never_empty and targets.is_matrix)
    ones = graph.cast(found, np.int64)
    if not targets.is_matrix:
        # A target of a single class has no other answer.
        second = graph("Mul", graph("Squeeze", ones, np.array([1])), np.int64(len(targets.classes_) - 1))
        return graph("Gather", graph.constant(targets.classes_), second)
    if targets.low < 0:
        ones = graph("Sub", graph("Mul", ones, np.int64(2)), np.int64(1))
    return ones if targets.dtype == np.int64 else graph.cast(ones, targets.dtype)


def probabilities(graph: Graph, model: Any, scores: Value) -> Value:
    """The probabilities (n_rows, n_columns) that a calibrated model gives scores: by sigmoids, or between knots.

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
    # A label of slope 0 has one probability, whatever its score.
    has_knots = model.slopes_ > 0
    knots = [knots if free else np.zeros((2, 1)) for knots, free in zip(model.knots_, has_knots)]
    return graph("Where", has_knots[None], _interpolated(graph, knots, scores), smooth)


def _interpolated(graph: Graph, knots: Sequence[FloatArray], scores: Value) -> Value:
    """Each column of scores mapped by its own broken line, level beyond its first and last knot.

    The knot at or below a score is found by halving: every label has a stretch of one table, filled up to a power of two.
    """
    width = 1 << (max(line.shape[1] for line in knots) - 1).bit_length()
    places, values, slopes = np.full((len(knots), width), np.inf), *np.zeros((2, len(knots), width))
    for j, (x, y) in enumerate(knots):
        places[j, : len(x)], values[j, : len(x)] = x, y
        values[j, len(x) :] = y[-1]
        slopes[j, : len(x) - 1] = np.diff(y) / np.diff(x)
    table, step = graph.constant(places.ravel().astype(graph.dtype)), width // 2
    at = graph.constant(np.arange(len(knots))[None] * width)
    at = graph("Expand", at, graph("Shape", scores))
    while step:
        further = graph("Add", at, np.int64(step))
        at = graph("Where", graph("GreaterOrEqual", scores, graph("Gather", table, further)), further, at)
        step //= 2
    beyond = graph("Max", graph("Sub", scores, graph("Gather", table, at)), 0.0)
    rise = graph("Mul", beyond, graph("Gather", slopes.ravel(), at))
    return graph("Add", graph("Gather", values.ravel(), at), rise)


def of_classes(graph: Graph, targets: SignedTargets, found: Value) -> Value:
    """What `predict_proba` makes of the probabilities of columns: of classes, they sum to 1.

    Parameters
    ----------
    graph : Graph
    targets : SignedTargets
    found : str

    Returns
    -------
    str
    """
    if targets.kind == "multiclass":
        return graph("Div", found, graph("ReduceSum", found, np.array([1])))
    if targets.is_matrix:
        return found
    if len(targets.classes_) == 1:
        return graph("Add", graph("Mul", found, 0.0), 1.0)
    return graph("Concat", graph("Sub", 1.0, found), found, axis=1)


def _chain(graph: Graph, rule: Chain, scores: Value, n_labels: int) -> Value:
    for one in rule.rules:
        scores = shifted(graph, one, scores, n_labels)
    return scores


def _row_threshold(graph: Graph, rule: RowThreshold, scores: Value, n_labels: int) -> Value:
    threshold = graph("Add", graph("MatMul", scores, rule.coef_[:, None]), float(rule.intercept_))
    moved = graph("Sub", scores, threshold)
    return _make_positive(graph, moved, graph("GreaterOrEqual", moved, 0.0)) if rule.ties_relevant else moved


def _non_empty(graph: Graph, rule: NonEmpty, scores: Value, n_labels: int) -> Value:
    return _make_positive(graph, scores, relevant(graph, scores, n_labels, never_empty=True))


def _top_k(graph: Graph, rule: TopK, scores: Value, n_labels: int) -> Value:
    k = int(rule.k)
    if k == 0:
        return graph("Sub", scores, graph("Add", graph("ReduceMax", scores, axes=[1]), 1.0))
    if k >= n_labels:
        moved = graph("Sub", scores, graph("Sub", graph("ReduceMin", scores, axes=[1]), 1.0))
        return _make_positive(graph, moved, graph("GreaterOrEqual", moved, 0.0))
    # Of equal scores the first come first, here as there.
    falling, order = graph.pair("TopK", scores, np.array([k + 1]), axis=1)
    columns = np.array([1])
    ends = graph("Slice", falling, np.array([k - 1]), np.array([k + 1]), columns)
    best = graph("Unsqueeze", graph("Slice", order, np.array([0]), np.array([k]), columns), np.array([2]))
    is_one = graph.cast(graph("Equal", best, np.arange(n_labels)), np.int64)
    chosen = graph.cast(graph("ReduceMax", is_one, axes=[1], keepdims=0), np.bool_)
    return _make_positive(graph, graph("Sub", scores, graph("ReduceMean", ends, axes=[1])), chosen)


def _make_positive(graph: Graph, scores: Value, chosen: Value) -> Value:
    """:func:`rbrl.decision.rules.make_positive`: exactly the chosen entries positive, none moved further than needed."""
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
