"""What a fitted classifier answers, and no more than the metrics ask for."""

import numpy as np
from scipy import sparse

from rbrl.decision import NonEmpty, ZeroThreshold
from rbrl.estimators.base import MultiLabelClassifier
from rbrl.metrics import get_metric, scores_of


def predictions(estimator, X, metrics):
    """Return (labels, scores) of a fitted classifier of label matrices; None for what no metric needs."""
    needs = {get_metric(metric).needs for metric in metrics}
    if isinstance(estimator, MultiLabelClassifier) and estimator.targets_.is_matrix:
        # By their contract predict cuts the scores at zero: one pass over the rows instead of two.
        scores = estimator.decision_function(X)
        rule = NonEmpty() if estimator.non_empty else ZeroThreshold()
        return (rule.labels(scores) if "labels" in needs else None), scores
    labels = _matrix(estimator.predict(X)) if "labels" in needs else None
    return labels, scores_of(estimator, X) if "scores" in needs else None


def _matrix(labels):
    labels = labels.toarray() if sparse.issparse(labels) else np.asarray(labels)
    return labels[:, None] if labels.ndim == 1 else labels
